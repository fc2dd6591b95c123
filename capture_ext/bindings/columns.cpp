// Module torchtrt_viz._native.columns: algorithms over whole columns.

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"
#include "bindings/timeline.hpp"
#include "columns/nesting.hpp"

namespace tv = torchtrt_viz;
namespace nb = nanobind;
using namespace torchtrt_viz::bindings;

NB_MODULE(columns, m) {
  m.doc() = "Algorithms over whole columns of spans.";
  translate_failures();

  m.def(
      "nest",
      [](const ConstColumn<std::int32_t>& track, const ConstColumn<std::int64_t>& start_ns,
         const ConstColumn<std::int64_t>& dur_ns) {
        if (track.shape(0) != start_ns.shape(0) || track.shape(0) != dur_ns.shape(0)) {
          throw nb::value_error("track, start_ns and dur_ns differ in length");
        }
        tv::Nesting nesting = [&] {
          nb::gil_scoped_release released;
          return tv::nest(view(track), view(start_ns), view(dur_ns));
        }();
        return nb::make_tuple(give(std::move(nesting.parent)), give(std::move(nesting.depth)),
                              give(std::move(nesting.self_ns)), nesting.overlaps);
      },
      nb::arg("track"), nb::arg("start_ns"), nb::arg("dur_ns"),
      "Return (parent, depth, self_ns, overlaps) of spans on tracks.\n\n"
      "Spans wholly inside another are its children; spans that only overlap are siblings and counted in\n"
      "`overlaps`. Columns: track int32, start_ns and dur_ns int64, of one length.");

  bind_timeline(m);
}
