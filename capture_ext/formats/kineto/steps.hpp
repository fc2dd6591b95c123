// Which profiler step each span belongs to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/io/column.hpp"
#include "formats/kineto/tables.hpp"

namespace torchtrt_viz::kineto {

// The N of "ProfilerStep#N" for every span, -1 where it is in none. Spans of a thread with steps belong to
// the step that they begin in; spans of another thread of a process in which only one thread has steps, to
// the step that they lie inside. Device work belongs to the step of the host call that launched it (by
// correlation), an annotation's copy on the device to that of the annotation (by external id).
Column<std::int32_t> number_steps(const Spans& spans, const std::vector<Lane>& lanes,
                                  std::span<const std::uint32_t> rank_of_lane, const Interner& names,
                                  std::uint8_t step_kind);

}  // namespace torchtrt_viz::kineto
