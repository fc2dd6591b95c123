#include "columns/nesting.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace torchtrt_viz {
namespace {

// An end beyond the range of the clock can only come from a damaged file; saturate rather than wrap.
std::int64_t end_of(std::int64_t start, std::int64_t dur) {
  std::int64_t end = 0;
  return __builtin_add_overflow(start, dur, &end) ? std::numeric_limits<std::int64_t>::max() : end;
}

struct Open {
  std::int64_t row;
  std::int64_t end;
  std::int64_t covered_until;  // children cover the time up to here
};

}  // namespace

Nesting nest(std::span<const std::int32_t> track, std::span<const std::int64_t> start_ns,
             std::span<const std::int64_t> dur_ns) {
  const std::size_t n = track.size();
  Nesting out;
  out.parent.assign(n, -1);
  out.depth.assign(n, 0);
  out.self_ns.assign(dur_ns.begin(), dur_ns.end());

  const auto before = [&](std::int64_t a, std::int64_t b) {
    const auto i = static_cast<std::size_t>(a);
    const auto j = static_cast<std::size_t>(b);
    if (track[i] != track[j]) return track[i] < track[j];
    if (start_ns[i] != start_ns[j]) return start_ns[i] < start_ns[j];
    if (dur_ns[i] != dur_ns[j]) return dur_ns[i] > dur_ns[j];
    return a < b;
  };
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }

  // Spans that may still enclose a later one, outermost first. A span whose end comes before that of a
  // later-started one can enclose nothing that the later one does not enclose more closely, so it is
  // dropped: the stack's ends fall from bottom to top, and the top is always the innermost candidate.
  std::vector<Open> stack;
  std::int32_t current = 0;
  for (const std::int64_t signed_row : order) {
    const auto row = static_cast<std::size_t>(signed_row);
    if (stack.empty() || track[row] != current) {
      stack.clear();
      current = track[row];
    }
    const std::int64_t start = start_ns[row];
    const std::int64_t end = end_of(start, dur_ns[row]);
    bool cut = false;
    while (!stack.empty() && (stack.back().end <= start || stack.back().end < end)) {
      cut |= stack.back().end > start;
      stack.pop_back();
    }
    out.overlaps += cut ? 1 : 0;
    if (!stack.empty()) {
      Open& parent = stack.back();
      out.parent[row] = parent.row;
      out.depth[row] = out.depth[static_cast<std::size_t>(parent.row)] + 1;
      const std::int64_t from = std::max(start, parent.covered_until);
      if (end > from) {
        out.self_ns[static_cast<std::size_t>(parent.row)] -= end - from;
        parent.covered_until = end;
      }
    }
    stack.push_back({signed_row, end, start});
  }
  return out;
}

}  // namespace torchtrt_viz
