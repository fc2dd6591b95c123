#include "bindings/timeline.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <span>

#include "bindings/handover.hpp"
#include "columns/name_search.hpp"
#include "columns/timeline_index.hpp"

namespace torchtrt_viz::bindings {
namespace {

using Mask = std::optional<ConstColumn<std::uint8_t>>;
using Lanes = ConstColumn<std::int32_t>;

Marked marked(const Mask& names, const Mask& rows) {
  Marked out;
  if (names) out.names = view(*names);
  if (rows) out.rows = view(*rows);
  return out;
}

nb::object place(const Hit& hit) {
  if (hit.row < 0) return nb::none();
  return nb::make_tuple(hit.row, hit.lane, hit.start_ns, hit.dur_ns);
}

nb::tuple lanes_of(const TimelineIndex& index) {
  std::vector<std::int32_t> track;
  std::vector<std::int32_t> sub;
  std::vector<std::uint8_t> kind;
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> end;
  std::vector<std::int64_t> busy;
  for (std::size_t i = 0; i < index.lanes().size(); ++i) {
    const Lane& lane = index.lanes()[i];
    track.push_back(lane.track);
    sub.push_back(lane.sub);
    kind.push_back(static_cast<std::uint8_t>(lane.kind));
    begin.push_back(lane.begin);
    end.push_back(lane.end);
    busy.push_back(index.busy_ns(static_cast<std::int32_t>(i)));
  }
  return nb::make_tuple(give(std::move(track)), give(std::move(sub)), give(std::move(kind)),
                        give(std::move(begin)), give(std::move(end)), give(std::move(busy)));
}

// The index's own column, kept alive by the index.
template <typename T>
Column<const T> borrow(std::span<const T> values, nb::handle owner) {
  return Column<const T>(values.data(), {values.size()}, owner);
}

}  // namespace

void bind_timeline(nb::module_& m) {
  m.def(
      "names_with",
      [](const nb::bytes& texts, const ConstColumn<std::int64_t>& offsets, const nb::bytes& wanted) {
        std::vector<std::uint8_t> out = [&] {
          nb::gil_scoped_release released;
          return names_with({texts.c_str(), texts.size()}, view(offsets), {wanted.c_str(), wanted.size()});
        }();
        return give(std::move(out));
      },
      nb::arg("texts"), nb::arg("offsets"), nb::arg("wanted"),
      "Return one byte per name: 1 where it contains `wanted`.\n\n"
      "Name k is texts[offsets[k]:offsets[k + 1]]. Raises ValueError for offsets that do not fit.");

  nb::class_<TimelineIndex>(
      m, "TimelineIndex",
      "Level-of-detail index of spans: lanes without overlap, exact busy time of any pixel "
      "column.\n\nImmutable once built: every method may be called from several threads.")
      .def(
          "__init__",
          [](TimelineIndex* self, const ConstColumn<std::int32_t>& track,
             const ConstColumn<std::int64_t>& start_ns, const ConstColumn<std::int64_t>& dur_ns,
             const ConstColumn<std::int32_t>& name, const ConstColumn<std::uint8_t>& flat) {
            nb::gil_scoped_release released;
            new (self) TimelineIndex({view(track), view(start_ns), view(dur_ns), view(name), view(flat)});
          },
          nb::arg("track"), nb::arg("start_ns"), nb::arg("dur_ns"), nb::arg("name"), nb::arg("flat"))
      .def_prop_ro("bounds",
                   [](const TimelineIndex& self) { return nb::make_tuple(self.first_ns(), self.last_ns()); })
      .def_prop_ro("nbytes", &TimelineIndex::bytes)
      .def("lanes", &lanes_of,
           "Return (track, sub, kind, begin, end, busy_ns) of every lane; sub is -1 and kind 1 for\n"
           "the cover of a track whose spans overlap.")
      .def(
          "view",
          [](const TimelineIndex& self, std::int64_t t0, std::int64_t t1, std::int32_t width,
             const Lanes& lanes, std::uint32_t exact_limit, std::int64_t wide_ns, const Mask& names,
             const Mask& rows) {
            View out = [&] {
              nb::gil_scoped_release released;
              return self.view({t0, t1, width, view(lanes), exact_limit, wide_ns, marked(names, rows)});
            }();
            nb::dict d;
            d["mode"] = give(std::move(out.mode));
            d["span_begin"] = give(std::move(out.span_begin));
            d["span_start"] = give(std::move(out.span_start));
            d["span_dur"] = give(std::move(out.span_dur));
            d["span_row"] = give(std::move(out.span_row));
            d["span_name"] = give(std::move(out.span_name));
            d["span_marked"] = give(std::move(out.span_marked));
            d["column_busy"] = give(std::move(out.column_busy));
            d["column_name"] = give(std::move(out.column_name));
            d["column_marked"] = give(std::move(out.column_marked));
            d["names"] = give(std::move(out.names));
            return d;
          },
          nb::arg("t0"), nb::arg("t1"), nb::arg("width"), nb::arg("lanes"), nb::arg("exact_limit"),
          nb::arg("wide_ns") = 0, nb::arg("names") = nb::none(), nb::arg("rows") = nb::none())
      .def(
          "columns",
          [](const TimelineIndex& self, std::int64_t t0, std::int64_t t1, std::int32_t width,
             std::int32_t lane) {
            Columns out = [&] {
              nb::gil_scoped_release released;
              return self.columns(t0, t1, width, lane);
            }();
            return nb::make_tuple(give(std::move(out.busy_ns)), give(std::move(out.longest_row)),
                                  give(std::move(out.count)));
          },
          nb::arg("t0"), nb::arg("t1"), nb::arg("width"), nb::arg("lane"))
      .def(
          "hit",
          [](const TimelineIndex& self, std::int32_t lane, std::int64_t t, std::int64_t tolerance) {
            return place(self.hit(lane, t, tolerance));
          },
          nb::arg("lane"), nb::arg("t"), nb::arg("tolerance") = 0)
      .def(
          "neighbour",
          [](const TimelineIndex& self, std::int32_t lane, std::int64_t start_ns, std::int64_t row,
             int step) { return place(self.neighbour(lane, start_ns, row, step)); },
          nb::arg("lane"), nb::arg("start_ns"), nb::arg("row"), nb::arg("step"))
      .def(
          "locate",
          [](const TimelineIndex& self, std::int32_t track, std::int64_t start_ns, std::int64_t row) {
            return place(self.locate(track, start_ns, row));
          },
          nb::arg("track"), nb::arg("start_ns"), nb::arg("row"))
      .def(
          "rows",
          [](const TimelineIndex& self, std::int64_t t0, std::int64_t t1, const Lanes& lanes) {
            std::vector<std::int64_t> out = [&] {
              nb::gil_scoped_release released;
              return self.rows(t0, t1, view(lanes));
            }();
            return give(std::move(out));
          },
          nb::arg("t0"), nb::arg("t1"), nb::arg("lanes"))
      .def(
          "totals",
          [](const TimelineIndex& self, std::int64_t t0, std::int64_t t1, const Lanes& lanes) {
            Totals out = [&] {
              nb::gil_scoped_release released;
              return self.totals(t0, t1, view(lanes));
            }();
            return nb::make_tuple(give(std::move(out.name)), give(std::move(out.count)),
                                  give(std::move(out.inside_ns)));
          },
          nb::arg("t0"), nb::arg("t1"), nb::arg("lanes"),
          "Return (name, count, inside_ns) of the spans that touch [t0, t1], by name.")
      .def(
          "next_marked",
          [](const TimelineIndex& self, const Lanes& lanes, std::int64_t t, std::int32_t lane, bool forward,
             const Mask& names, const Mask& rows, std::int64_t row) {
            const Hit hit = [&] {
              nb::gil_scoped_release released;
              return self.next_marked(marked(names, rows), view(lanes), {t, lane, row}, forward);
            }();
            return place(hit);
          },
          nb::arg("lanes"), nb::arg("t"), nb::arg("lane"), nb::arg("forward"), nb::arg("names") = nb::none(),
          nb::arg("rows") = nb::none(), nb::arg("row") = -1)
      .def(
          "marked_until",
          [](const TimelineIndex& self, const Lanes& lanes, std::int64_t t, std::int32_t lane,
             std::int64_t row, const Mask& names, const Mask& rows) {
            nb::gil_scoped_release released;
            return self.marked_until(marked(names, rows), view(lanes), {t, lane, row});
          },
          nb::arg("lanes"), nb::arg("t"), nb::arg("lane"), nb::arg("row"), nb::arg("names") = nb::none(),
          nb::arg("rows") = nb::none(),
          "How many marked spans of `lanes` come before a span or are it, by start, lane and position.")
      .def(
          "count_marked",
          [](const TimelineIndex& self, const Mask& names, const Mask& rows) {
            std::vector<std::int64_t> out = [&] {
              nb::gil_scoped_release released;
              return self.count_marked(marked(names, rows));
            }();
            return give(std::move(out));
          },
          nb::arg("names") = nb::none(), nb::arg("rows") = nb::none())
      .def_prop_ro(
          "name_counts",
          [](const nb::object& self) {
            const auto& index = nb::cast<const TimelineIndex&>(self);
            return borrow(std::span<const std::int64_t>(index.name_counts()), self);
          },
          "Spans of every name, by its code.")
      .def(
          "whole",
          [](const nb::object& self) {
            const auto& index = nb::cast<const TimelineIndex&>(self);
            return nb::make_tuple(borrow(index.starts(), self), give(index.durations()),
                                  borrow(index.names(), self), borrow(index.row_numbers(), self));
          },
          "Return (start_ns, dur_ns, name, row) of every span, lane after lane.");
}

}  // namespace torchtrt_viz::bindings
