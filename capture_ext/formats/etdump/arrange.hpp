// The tree that an ETDump does not record: which event lies inside which.
//
// The file has no parent field. What it does have: events are written when they end, a delegate's events
// carry chain and instruction of the DELEGATE_CALL that made them, and the runtime's own events nest in time.
// Delegates may log times that are not of the host's clock, or counts of microseconds laid end to end
// (XNNPACK); such events belong to their call by position and have no real place on the time axis.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace torchtrt_viz::etdump {

// What a producer said about an event's times; kDecide: nothing.
enum class Placing : std::uint8_t {
  kDecide,
  kMeasured,   // a real start and end on the host
  kModeled,    // a real duration at most
  kElsewhere,  // not on the host at all: it stays out of the tree
};

// Columns of one length, runs in order; all times in ns, durations 0 or more.
struct Timeline {
  std::span<const std::int32_t> run;
  std::span<const std::int32_t> chain;
  std::span<const std::int32_t> instruction;
  std::span<const std::uint8_t> role;  // Role
  std::span<const std::int64_t> start;
  std::span<const std::int64_t> duration;
  std::span<const std::uint8_t> placing;    // Placing; may be empty: kDecide for all
  std::span<const std::uint8_t> in_engine;  // 1: a layer that ran on the host, within enqueue; may be empty
  std::span<const std::int32_t> shape;      // a run's shape: runs of one shape have the same events
};

struct Arrangement {
  std::vector<std::int64_t> parent;   // row, -1 none
  std::vector<std::int32_t> depth;    // 0 outermost
  std::vector<std::int64_t> self_ns;  // duration less what children cover
  std::vector<std::int64_t> call;     // row of the DELEGATE_CALL that a delegate's event belongs to, -1 none
  std::vector<std::uint8_t> modeled;  // 1: the place on the time axis is not real
  std::int64_t overlaps = 0;          // events that cut into an earlier one of their run without lying in it
};

Arrangement arrange(const Timeline& timeline);

}  // namespace torchtrt_viz::etdump
