// The span around a moment, or the next one to begin, on a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/kineto/tables.hpp"

namespace torchtrt_viz::kineto {

struct PlaceQuery {
  std::int32_t lane;
  std::int64_t ts;
  std::uint32_t place;  // for the caller
  bool enclosing;       // the innermost span with start <= ts <= end, else the first with start >= ts
  std::int64_t row;     // the answer, -1 none
};

// Answers all queries (and sorts them) in one sweep over the lanes that are asked about.
void find_spans(const Spans& spans, std::size_t lanes, std::vector<PlaceQuery>& queries);

}  // namespace torchtrt_viz::kineto
