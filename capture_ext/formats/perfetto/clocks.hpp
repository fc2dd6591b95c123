// Clocks of a trace, and times brought from any of them to the trace's own.
//
// A clock snapshot gives the readings of several clocks at one instant. A time on a clock is brought to
// another by the last snapshot of both that is not later, else by the first; where no snapshot has both, over
// other clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "formats/perfetto/sequence.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

// Times beyond this, or before zero, can only come from a damaged file; what is within leaves room for
// differences, which are times themselves once the trace begins at zero.
inline constexpr std::int64_t kLargestTime = std::int64_t{1} << 62;

class Clocks {
 public:
  struct Reading {
    std::uint32_t clock = 0;
    std::int64_t ns = 0;
    bool incremental = false;
  };

  // Takes in the snapshots of the whole trace, in order. Snapshots hold at most kMostClocks clocks.
  void add(std::uint32_t sequence, Bytes snapshot);
  // Fixes the clock that all times are brought to; to be called once, before any conversion.
  void choose_target();

  // Readings of one snapshot: called again where the trace is read in order, for incremental clocks.
  [[nodiscard]] std::vector<Reading> readings(Bytes snapshot) const;

  [[nodiscard]] bool incremental(std::uint32_t sequence, std::uint32_t clock) const;
  // Raw value of a clock in nanoseconds; nullopt when it does not fit.
  [[nodiscard]] std::optional<std::int64_t> nanoseconds(std::uint32_t sequence, std::uint32_t clock,
                                                        std::uint64_t value) const;
  // Time on the target clock; nullopt when no snapshots lead there.
  [[nodiscard]] std::optional<std::int64_t> convert(std::uint32_t sequence, std::uint32_t clock,
                                                    std::int64_t ns);

  [[nodiscard]] std::uint32_t target() const { return target_; }
  // Unix time less time on the target clock, where a snapshot relates them.
  [[nodiscard]] std::optional<std::int64_t> unix_offset();

  static constexpr std::size_t kMostClocks = 64;

 private:
  using Key = std::uint64_t;
  struct Entry {
    std::uint32_t snapshot;
    std::int64_t ns;
  };
  struct Clock {
    std::uint64_t multiplier = 1;
    bool incremental = false;
    std::vector<Entry> entries;
    Key next = 0;            // clock to convert to on the way to the target
    std::uint32_t hops = 0;  // 0 for the target and for clocks from which it cannot be reached
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;  // (own time, time of next), sorted
  };

  static Key key(std::uint32_t sequence, std::uint32_t clock);
  void find_paths();
  void pair_up(Clock& clock);
  static std::int64_t shift(const Clock& clock, std::int64_t ns, bool& overflow);

  IdMap<Clock> clocks_;
  std::vector<std::vector<Key>> snapshots_;
  std::uint32_t primary_ = 0;
  std::uint32_t target_ = 0;
};

}  // namespace torchtrt_viz::perfetto
