// Module torchtrt_viz._native.xplane: XPlanes of XLA and TensorFlow as columns.
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"
#include "formats/xplane/decoder.hpp"

namespace xp = torchtrt_viz::xplane;
namespace nb = nanobind;
using namespace torchtrt_viz::bindings;

namespace {

constexpr const char* kProblems[] = {"truncated", "damaged_plane", "damaged_event", "damaged_stat"};
static_assert(std::size(kProblems) == static_cast<std::size_t>(xp::Problem::kCount));

nb::dict stats_of(xp::Stats&& stats) {
  nb::dict out;
  out["begin"] = give(std::move(stats.begin));
  out["name"] = give(std::move(stats.name));
  out["type"] = give(std::move(stats.type));
  out["value"] = give(std::move(stats.value));
  return out;
}

nb::dict planes_of(xp::Planes&& planes) {
  nb::dict out;
  out["id"] = give(std::move(planes.id));
  out["name"] = give(std::move(planes.name));
  out["stats"] = stats_of(std::move(planes.stats));
  return out;
}

nb::dict lines_of(xp::Lines&& lines) {
  nb::dict out;
  out["plane"] = give(std::move(lines.plane));
  out["id"] = give(std::move(lines.id));
  out["display_id"] = give(std::move(lines.display_id));
  out["timestamp_ns"] = give(std::move(lines.timestamp_ns));
  out["event_begin"] = give(std::move(lines.event_begin));
  out["name"] = give(std::move(lines.name));
  out["display_name"] = give(std::move(lines.display_name));
  return out;
}

nb::dict kinds_of(xp::Kinds&& kinds) {
  nb::dict out;
  out["plane"] = give(std::move(kinds.plane));
  out["id"] = give(std::move(kinds.id));
  out["name"] = give(std::move(kinds.name));
  out["display_name"] = give(std::move(kinds.display_name));
  out["bytes"] = give(std::move(kinds.bytes));
  out["stats"] = stats_of(std::move(kinds.stats));
  return out;
}

nb::dict events_of(xp::Events&& events) {
  nb::dict out;
  out["kind"] = give(std::move(events.kind));
  out["kind_id"] = give(std::move(events.kind_id));
  out["place"] = give(std::move(events.place));
  out["at"] = give(std::move(events.at));
  out["dur_ps"] = give(std::move(events.dur_ps));
  out["stats"] = stats_of(std::move(events.stats));
  return out;
}

nb::dict decode(const nb::bytes& data) {
  const torchtrt_viz::protobuf::Bytes view(static_cast<const std::uint8_t*>(data.data()), data.size());
  xp::Space space = [&] {
    nb::gil_scoped_release released;
    return xp::decode(view);
  }();
  nb::dict out, problems;
  nb::list strings;
  for (std::uint32_t code = 0; code < space.strings.size(); ++code)
    strings.append(text(std::string(space.strings.text(code))));
  for (std::size_t i = 0; i < std::size(kProblems); ++i) {
    if (space.problems[i].count > 0)
      problems[kProblems[i]] = nb::make_tuple(space.problems[i].count, space.problems[i].offset);
  }
  out["strings"] = strings;
  out["planes"] = planes_of(std::move(space.planes));
  out["lines"] = lines_of(std::move(space.lines));
  out["kinds"] = kinds_of(std::move(space.kinds));
  out["events"] = events_of(std::move(space.events));
  out["errors"] = texts(space.errors);
  out["warnings"] = texts(space.warnings);
  out["hosts"] = texts(space.hosts);
  out["problems"] = problems;
  out["bytes"] = space.bytes;
  out["plane_bytes"] = space.plane_bytes;
  out["lost_bytes"] = space.lost_bytes;
  return out;
}

}  // namespace

NB_MODULE(xplane, m) {  // NOLINT(performance-unnecessary-value-param): the macro declares it
  m.doc() = "XPlanes of XLA and TensorFlow as columns.";
  translate_failures();
  m.def("decode", &decode, nb::arg("data"));
}
