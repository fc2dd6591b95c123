// Nesting of spans within their tracks: parent, depth and self time from start and duration alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace torchtrt_viz {

struct Nesting {
  std::vector<std::int64_t> parent;   // row of the innermost enclosing span on the same track, -1 none
  std::vector<std::int32_t> depth;    // 0 for outermost spans
  std::vector<std::int64_t> self_ns;  // duration less the time covered by children
  std::int64_t overlaps = 0;          // spans that cut into an earlier one without lying inside it
};

// Spans that lie wholly inside another are its children; spans that only overlap are siblings and each
// keeps its whole self time. Of spans with the same start the longer is the parent, of equal spans the one
// earlier in the file. All three columns have the same length; durations are 0 or more.
Nesting nest(std::span<const std::int32_t> track, std::span<const std::int64_t> start_ns,
             std::span<const std::int64_t> dur_ns);

}  // namespace torchtrt_viz
