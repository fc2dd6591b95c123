#include "core/clock.hpp"

namespace torchtrt_viz {

WallAnchor wall_anchor() noexcept {
  constexpr int kAttempts = 8;
  WallAnchor best;
  best.uncertainty_ns = INT64_MAX;
  for (int i = 0; i < kAttempts; ++i) {
    const auto before = monotonic_ns();
    timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    const auto after = monotonic_ns();
    const auto half = (after - before + 1) / 2;
    if (half < best.uncertainty_ns) {
      best.monotonic_ns = before + (after - before) / 2;
      best.unix_ns = static_cast<std::int64_t>(wall.tv_sec) * 1'000'000'000 + wall.tv_nsec;
      best.uncertainty_ns = half;
    }
  }
  return best;
}

}  // namespace torchtrt_viz
