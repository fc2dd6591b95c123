// XSpace (xplane.proto of XLA and TensorFlow) as columns: planes, lines, events, and their statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/io/column.hpp"
#include "formats/io/interner.hpp"
#include "formats/io/protobuf_fields.hpp"

namespace torchtrt_viz::xplane {

// What the value of a statistic is. Of bytes only the number is kept: they hold whole programs.
enum class Type : std::uint8_t { kNone, kReal, kUnsigned, kSigned, kText, kBytes };

// Statistics of rows of a table, those of row i at begin[i] to begin[i + 1].
struct Stats {
  Column<std::int64_t> begin;
  Column<std::uint32_t> name;  // number of a string; Interner::kNone: its description is missing
  Column<std::uint8_t> type;
  Column<std::int64_t> value;  // the number, the bits of a double, or the number of a string or of bytes
};

struct Planes {
  Column<std::int64_t> id;
  Column<std::uint32_t> name;
  Stats stats;
};

// The events of line i are at event_begin[i] to event_begin[i + 1].
struct Lines {
  Column<std::uint32_t> plane;
  Column<std::int64_t> id, display_id, timestamp_ns, event_begin;
  Column<std::uint32_t> name, display_name;
};

// What events of one plane have in common.
struct Kinds {
  Column<std::uint32_t> plane, name, display_name;
  Column<std::int64_t> id, bytes;
  Stats stats;
};

enum class Place : std::uint8_t { kNone, kOffset, kOccurrences };

struct Events {
  Column<std::int32_t> kind;     // row of Kinds, -1: its description is missing
  Column<std::int64_t> kind_id;  // the number by which the file names it
  Column<std::uint8_t> place;    // what at says: an offset in ps, how often, or nothing
  Column<std::int64_t> at;
  Column<std::int64_t> dur_ps;
  Stats stats;
};

enum class Problem : std::uint8_t {
  kTruncated,     // the file ends inside of a plane, or does not go on as one
  kDamagedPlane,  // a plane, line or description does not read to its end
  kDamagedEvent,  // an event was left out
  kDamagedStat,   // a statistic was left out
  kCount
};

struct Tally {
  std::uint64_t count = 0;
  std::size_t offset = 0;  // of the first
};

struct Space {
  Interner strings;
  Planes planes;
  Lines lines;
  Kinds kinds;
  Events events;
  std::vector<std::string> errors, warnings, hosts;
  Tally problems[static_cast<std::size_t>(Problem::kCount)];
  std::uint64_t bytes = 0, plane_bytes = 0, lost_bytes = 0;
};

// Reads what is whole; damage is counted and never thrown.
Space decode(protobuf::Bytes data);

}  // namespace torchtrt_viz::xplane
