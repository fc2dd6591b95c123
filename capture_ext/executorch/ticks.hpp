// The runtime's ticks and our clock: both read CLOCK_MONOTONIC, from origins a constant apart.
//
// Conversions use one offset for the life of the process, so what is converted keeps its order and durations.
#pragma once

#include <cstdint>

#include "core/visibility.hpp"

namespace torchtrt_viz::et {

TORCHTRT_VIZ_API std::uint64_t ticks_of(std::int64_t monotonic_ns) noexcept;
TORCHTRT_VIZ_API std::int64_t monotonic_of(std::uint64_t ticks) noexcept;

// Every clock that other traces use, read together.
struct ClockAnchor {
  std::uint64_t ticks_before = 0;
  std::uint64_t ticks_after = 0;
  std::int64_t monotonic_ns = 0;
  std::int64_t unix_ns = 0;
  std::uint64_t tick_numerator = 1;  // ns = ticks * numerator / denominator
  std::uint64_t tick_denominator = 1;
};
TORCHTRT_VIZ_API ClockAnchor clock_anchor() noexcept;

}  // namespace torchtrt_viz::et
