// Callers that the file states: torch's Python tracer numbers its frames and writes who called each.
#pragma once

#include <cstdint>
#include <vector>

#include "columns/nesting.hpp"
#include "formats/kineto/tables.hpp"

namespace torchtrt_viz::kineto {

// Calls that were never seen to return (C functions that leave by another way) are recorded until the end of
// the recording, over everything that ran after them. What their callers did next proves that they had ended.
struct CallEnds {
  std::vector<std::int64_t> dur;       // of every span, cut where it is proven too long; empty: nothing is
  std::vector<std::int64_t> unclosed;  // rows whose recorded end is not their own, ascending
};

CallEnds proven_ends(const Spans& spans, const std::vector<PythonCall>& calls);

// Gives calls the callers that the file states, where nesting by time found another call around them.
void apply_stated_callers(const Spans& spans, const std::vector<PythonCall>& calls, const CallEnds& ends,
                          Nesting& nesting);

}  // namespace torchtrt_viz::kineto
