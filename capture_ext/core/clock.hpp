// The one clock of everything recorded here: CLOCK_MONOTONIC, in ns, as time.perf_counter_ns() reads it.
#pragma once

#include <time.h>

#include <cstdint>

#include "core/visibility.hpp"

namespace torchtrt_viz {

inline std::int64_t monotonic_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Monotonic and wall clock read together.
struct WallAnchor {
  std::int64_t monotonic_ns = 0;
  std::int64_t unix_ns = 0;
  std::int64_t uncertainty_ns = 0;  // the wall clock was read within +- this of monotonic_ns
};

// The tightest of a few attempts: another thread may be scheduled between two reads.
TORCHTRT_VIZ_API WallAnchor wall_anchor() noexcept;

}  // namespace torchtrt_viz
