#include "executorch/ticks.hpp"

#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>

#include "core/clock.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

struct Relation {
  std::int64_t offset_ns = 0;  // monotonic - ticks
  std::uint64_t numerator = 1;
  std::uint64_t denominator = 1;

  std::int64_t ns_of(std::uint64_t ticks) const noexcept {
    if (numerator == denominator) return static_cast<std::int64_t>(ticks);
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>(static_cast<Wide>(ticks) * numerator / denominator);
  }
};

// Every sample bounds the constant offset from both sides; the bounds of many samples meet within a few tens
// of ns.
Relation measure() {
  constexpr int kSamples = 64;
  rt::runtime_init();
  Relation relation;
  const auto ratio = rt::pal_ticks_to_ns_multiplier();
  if (ratio.numerator != 0 && ratio.denominator != 0) {
    relation.numerator = ratio.numerator;
    relation.denominator = ratio.denominator;
  }
  std::int64_t low = INT64_MIN;
  std::int64_t high = INT64_MAX;
  for (int i = 0; i < kSamples; ++i) {
    const auto before = monotonic_ns();
    const auto ticks = relation.ns_of(rt::pal_current_ticks());
    const auto after = monotonic_ns();
    low = std::max(low, before - ticks);
    high = std::min(high, after - ticks);
  }
  relation.offset_ns = low + (high - low) / 2;
  return relation;
}

const Relation& relation() {
  static const Relation instance = measure();
  return instance;
}

}  // namespace

std::uint64_t ticks_of(std::int64_t ns) noexcept {
  const auto& r = relation();
  const auto since = static_cast<std::uint64_t>(std::max<std::int64_t>(ns - r.offset_ns, 0));
  if (r.numerator == r.denominator) return since;
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(since) * r.denominator / r.numerator);
}

std::int64_t monotonic_of(std::uint64_t ticks) noexcept {
  const auto& r = relation();
  return r.ns_of(ticks) + r.offset_ns;
}

ClockAnchor clock_anchor() noexcept {
  const auto& r = relation();
  ClockAnchor out;
  out.tick_numerator = r.numerator;
  out.tick_denominator = r.denominator;
  out.ticks_before = rt::pal_current_ticks();
  const auto wall = wall_anchor();
  out.ticks_after = rt::pal_current_ticks();
  out.monotonic_ns = wall.monotonic_ns;
  out.unix_ns = wall.unix_ns;
  return out;
}

}  // namespace torchtrt_viz::et
