// Module torchtrt_viz._native.perfetto: Perfetto protobuf traces, read and written as columns.
#include <Python.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"
#include "formats/perfetto/decoder.hpp"
#include "formats/perfetto/encode.hpp"

namespace pf = torchtrt_viz::perfetto;
namespace nb = nanobind;
using namespace torchtrt_viz::bindings;

namespace {

pf::Bytes view_of(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.c_str()), bytes.size()};
}

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

constexpr const char* kProblems[] = {"truncated",      "damaged_packet", "damaged_message", "missing_state",
                                     "missing_string", "no_time",        "other_clock",     "legacy_phase",
                                     "compressed",     "no_value",       "legacy_flow"};
static_assert(std::size(kProblems) == static_cast<std::size_t>(pf::Problem::kCount));

nb::dict tracks_of(const pf::Trace& trace) {
  std::vector<std::uint64_t> uuid, parent;
  std::vector<std::uint8_t> kind, gpu;
  std::vector<std::int32_t> device, name, process_name, thread_name, unit, description;
  std::vector<std::int64_t> pid, tid, order;
  for (const pf::Track& track : trace.tracks.all()) {
    uuid.push_back(track.uuid);
    parent.push_back(track.parent);
    kind.push_back(static_cast<std::uint8_t>(track.kind));
    name.push_back(track.name);
    process_name.push_back(track.process_name);
    thread_name.push_back(track.thread_name);
    unit.push_back(track.unit);
    description.push_back(track.description);
    pid.push_back(track.pid);
    tid.push_back(track.tid);
    order.push_back(track.order);
    gpu.push_back(track.gpu ? 1 : 0);
    device.push_back(track.device);
  }
  nb::dict out;
  out["uuid"] = give(std::move(uuid));
  out["parent"] = give(std::move(parent));
  out["kind"] = give(std::move(kind));
  out["name"] = give(std::move(name));
  out["process_name"] = give(std::move(process_name));
  out["thread_name"] = give(std::move(thread_name));
  out["unit"] = give(std::move(unit));
  out["description"] = give(std::move(description));
  out["pid"] = give(std::move(pid));
  out["tid"] = give(std::move(tid));
  out["order"] = give(std::move(order));
  out["gpu"] = give(std::move(gpu));
  out["device"] = give(std::move(device));
  return out;
}

// What stays of a trace after its columns were handed over: strings and arguments.
class Decoded {
 public:
  explicit Decoded(pf::Trace&& trace) : trace_(std::move(trace)) {}
  Decoded(const Decoded&) = delete;
  Decoded& operator=(const Decoded&) = delete;

  nb::list strings() const { return texts(trace_.strings.copy()); }

  nb::dict spans() {
    pf::Spans& s = trace_.slices.spans;
    nb::dict out;
    out["name"] = give(std::move(s.name));
    out["category"] = give(std::move(s.category));
    out["track"] = give(std::move(s.track));
    out["start_ns"] = give(std::move(s.start));
    out["dur_ns"] = give(std::move(s.dur));
    out["correlation"] = give(std::move(s.correlation));
    out["external_id"] = give(std::move(s.external_id));
    out["corr_id"] = give(std::move(s.corr_id));
    out["iteration"] = give(std::move(s.iteration));
    out["run"] = give(std::move(s.run));
    return out;
  }

  nb::dict instants() {
    pf::Instants& i = trace_.slices.instants;
    nb::dict out;
    out["name"] = give(std::move(i.name));
    out["category"] = give(std::move(i.category));
    out["track"] = give(std::move(i.track));
    out["ts_ns"] = give(std::move(i.ts));
    out["unfinished"] = give(std::move(i.unfinished));
    return out;
  }

  nb::dict counters() {
    nb::dict out;
    out["track"] = give(std::move(trace_.counters.track));
    out["ts_ns"] = give(std::move(trace_.counters.ts));
    out["value"] = give(std::move(trace_.counters.value));
    return out;
  }

  nb::dict flows() {
    pf::Flows& f = trace_.slices.flows;
    nb::dict out;
    out["source"] = give(std::move(f.source));
    out["target"] = give(std::move(f.target));
    out["id"] = give(std::move(f.id));
    return out;
  }

  nb::dict tracks() const { return tracks_of(trace_); }

  nb::dict problems() const {
    nb::dict out;
    for (std::size_t i = 0; i < std::size(kProblems); ++i) {
      const pf::Tally& tally = trace_.problems[i];
      if (tally.count > 0) out[kProblems[i]] = nb::make_tuple(tally.count, tally.offset);
    }
    if (trace_.slices.ends_without_begin > 0) {
      out["end_without_begin"] = nb::make_tuple(trace_.slices.ends_without_begin, nb::none());
    }
    if (trace_.slices.unfinished > 0)
      out["unfinished"] = nb::make_tuple(trace_.slices.unfinished, nb::none());
    return out;
  }

  nb::dict accounting() const {
    const pf::Accounting& a = trace_.accounting;
    const auto by = [](const auto& counts, auto&& name) {
      nb::dict out;
      for (const auto& [key, count] : counts) {
        if (count.packets > 0) out[name(key)] = nb::make_tuple(count.packets, count.bytes);
      }
      return out;
    };
    const auto number = [](auto key) { return nb::int_(key); };
    nb::dict left_out;
    for (std::size_t i = 0; i < std::size(kProblems); ++i) {
      if (a.left_out[i].packets > 0)
        left_out[kProblems[i]] = nb::make_tuple(a.left_out[i].packets, a.left_out[i].bytes);
    }
    nb::dict out;
    out["read"] = by(a.read, number);
    out["unread"] = by(a.unread, number);
    out["unread_events"] = by(a.unread_events, number);
    out["unread_phases"] = by(a.unread_phases, [](char phase) {
      const auto byte = static_cast<unsigned char>(phase);
      return byte >= 0x21 && byte < 0x7F ? nb::str(&phase, 1) : nb::str(std::to_string(byte).c_str());
    });
    out["other_fields"] = by(a.other_fields, number);
    out["left_out"] = left_out;
    out["lost_ends"] = nb::make_tuple(trace_.slices.ends_without_begin, trace_.slices.bytes_of_lost_ends);
    out["cut_bytes"] = a.cut_bytes;
    out["bytes"] = a.bytes;
    out["identified"] = a.identified;
    return out;
  }

  nb::list metadata() const {
    nb::list out;
    for (const auto& [name, value] : trace_.metadata) out.append(nb::make_tuple(text(name), text(value)));
    return out;
  }

  // Columns of argument numbers were handed over with spans() and instants(), or are held here.
  nb::list span_arguments(const ConstColumn<std::int64_t>& rows) const {
    const pf::Spans& s = trace_.slices.spans;
    nb::list out;
    for (const std::int64_t row : view(rows)) {
      const auto i = static_cast<std::size_t>(row);
      if (row < 0 || i >= s.begin_arguments.size()) throw nb::index_error("row of spans");
      out.append(bytes_of(trace_.arguments.json(s.begin_arguments[i], s.end_arguments[i], trace_.strings)));
    }
    return out;
  }

  nb::list instant_arguments(const ConstColumn<std::int64_t>& rows) const {
    const pf::Instants& s = trace_.slices.instants;
    nb::list out;
    for (const std::int64_t row : view(rows)) {
      const auto i = static_cast<std::size_t>(row);
      if (row < 0 || i >= s.arguments.size()) throw nb::index_error("row of instants");
      out.append(bytes_of(trace_.arguments.json(s.arguments[i], pf::kNone, trace_.strings)));
    }
    return out;
  }

  std::uint32_t clock() const { return trace_.clock; }
  std::optional<std::int64_t> unix_offset() const { return trace_.unix_offset; }
  std::uint64_t packets() const { return trace_.packets; }

 private:
  pf::Trace trace_;
};

template <typename T>
ConstColumn<T> column(const nb::dict& columns, const char* name) {
  if (!columns.contains(name))
    throw torchtrt_viz::Error(torchtrt_viz::Code::invalid_argument,
                              std::string("column ") + name + " is missing");
  return nb::cast<ConstColumn<T>>(columns[name]);
}

// Keeps the numpy arrays that the encoder looks into.
class Writer {
 public:
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  Writer(const nb::dict& spans, const nb::dict& instants, const nb::dict& counters, const nb::dict& flows,
         std::vector<std::string> names, std::vector<std::string> categories, std::vector<std::string> runs,
         std::int64_t origin)
      : s_lane_(column<std::uint64_t>(spans, "lane")),
        s_name_(column<std::int32_t>(spans, "name")),
        s_category_(column<std::int32_t>(spans, "category")),
        s_domain_(column<std::int32_t>(spans, "domain")),
        s_timing_(column<std::int32_t>(spans, "timing")),
        s_start_(column<std::int64_t>(spans, "start_ns")),
        s_dur_(column<std::int64_t>(spans, "dur_ns")),
        s_correlation_(column<std::int64_t>(spans, "correlation")),
        s_external_(column<std::int64_t>(spans, "external_id")),
        s_iteration_(column<std::int32_t>(spans, "iteration")),
        s_run_(column<std::int32_t>(spans, "run")),
        i_lane_(column<std::uint64_t>(instants, "lane")),
        i_name_(column<std::int32_t>(instants, "name")),
        i_category_(column<std::int32_t>(instants, "category")),
        i_domain_(column<std::int32_t>(instants, "domain")),
        i_ts_(column<std::int64_t>(instants, "ts_ns")),
        c_lane_(column<std::uint64_t>(counters, "lane")),
        c_ts_(column<std::int64_t>(counters, "ts_ns")),
        c_value_(column<double>(counters, "value")),
        f_source_(column<std::int64_t>(flows, "source")),
        f_target_(column<std::int64_t>(flows, "target")) {
    check(names, categories, runs);
    const pf::SpanColumns span_columns{view(s_lane_),      view(s_name_),        view(s_category_),
                                       view(s_domain_),    view(s_timing_),      view(s_start_),
                                       view(s_dur_),       view(s_correlation_), view(s_external_),
                                       view(s_iteration_), view(s_run_)};
    const pf::InstantColumns instant_columns{view(i_lane_), view(i_name_), view(i_category_), view(i_domain_),
                                             view(i_ts_)};
    nb::gil_scoped_release released;
    encoder_ = std::make_unique<pf::Encoder>(
        span_columns, instant_columns, pf::CounterColumns{view(c_lane_), view(c_ts_), view(c_value_)},
        pf::FlowColumns{view(f_source_), view(f_target_)}, std::move(names), std::move(categories),
        std::move(runs), origin);
  }

  void set_arguments(const std::vector<nb::bytes>& arguments) {
    if (arguments.size() != s_lane_.shape(0)) throw nb::value_error("one bytes object per span");
    std::vector<std::string> out;
    out.reserve(arguments.size());
    for (const nb::bytes& item : arguments) out.emplace_back(item.c_str(), item.size());
    encoder_->set_arguments(std::move(out));
  }

  nb::bytes head(const nb::list& tracks, std::optional<std::int64_t> unix_ns, const std::string& name,
                 const nb::bytes& metadata) const {
    std::vector<pf::TrackRow> rows;
    for (const nb::handle item : tracks) {
      const auto track = nb::cast<nb::dict>(item);
      pf::TrackRow row;
      row.uuid = nb::cast<std::uint64_t>(track["uuid"]);
      row.parent = nb::cast<std::uint64_t>(track["parent"]);
      row.name = nb::cast<std::string>(track["name"]);
      row.process = nb::cast<bool>(track["process"]);
      row.thread = nb::cast<bool>(track["thread"]);
      row.counter = nb::cast<bool>(track["counter"]);
      row.pid = nb::cast<std::int64_t>(track["pid"]);
      row.tid = nb::cast<std::int64_t>(track["tid"]);
      row.unit = nb::cast<std::string>(track["unit"]);
      row.order = nb::cast<std::int32_t>(track["order"]);
      row.explicit_order = nb::cast<bool>(track["explicit_order"]);
      row.description = nb::cast<std::string>(track["description"]);
      rows.push_back(std::move(row));
    }
    return bytes_of(encoder_->head(rows, unix_ns.has_value(), unix_ns.value_or(0), name,
                                   {metadata.c_str(), metadata.size()}));
  }

  nb::bytes packets(std::size_t begin, std::size_t end) const {
    const std::string out = [&] {
      nb::gil_scoped_release released;
      return encoder_->packets(begin, end);
    }();
    return bytes_of(out);
  }

  nb::object written_rows() const { return nb::cast(give(encoder_->written_rows())); }
  std::size_t events() const { return encoder_->events(); }
  std::uint64_t flows_left_out() const { return encoder_->flows_left_out(); }

 private:
  // The encoder indexes with what the columns hold: nothing of it may lie outside.
  void check(const std::vector<std::string>& names, const std::vector<std::string>& categories,
             const std::vector<std::string>& runs) const {
    const std::size_t spans = s_lane_.shape(0);
    const bool same =
        s_name_.shape(0) == spans && s_category_.shape(0) == spans && s_domain_.shape(0) == spans &&
        s_timing_.shape(0) == spans && s_start_.shape(0) == spans && s_dur_.shape(0) == spans &&
        s_correlation_.shape(0) == spans && s_external_.shape(0) == spans && s_iteration_.shape(0) == spans &&
        s_run_.shape(0) == spans && i_name_.shape(0) == i_lane_.shape(0) &&
        i_category_.shape(0) == i_lane_.shape(0) && i_domain_.shape(0) == i_lane_.shape(0) &&
        i_ts_.shape(0) == i_lane_.shape(0) && c_ts_.shape(0) == c_lane_.shape(0) &&
        c_value_.shape(0) == c_lane_.shape(0) && f_target_.shape(0) == f_source_.shape(0);
    if (!same) throw nb::value_error("columns differ in length");
    const auto inside = [](const ConstColumn<std::int32_t>& codes, std::size_t size) {
      for (const std::int32_t code : view(codes)) {
        if (code >= 0 && static_cast<std::size_t>(code) >= size) return false;
      }
      return true;
    };
    if (!inside(s_name_, names.size()) || !inside(i_name_, names.size()) ||
        !inside(s_category_, categories.size()) || !inside(s_domain_, categories.size()) ||
        !inside(s_timing_, categories.size()) || !inside(i_category_, categories.size()) ||
        !inside(i_domain_, categories.size()) || !inside(s_run_, runs.size())) {
      throw nb::value_error("a code has no text");
    }
    for (const auto* ends : {&f_source_, &f_target_}) {
      for (const std::int64_t row : view(*ends)) {
        if (row >= static_cast<std::int64_t>(spans)) throw nb::value_error("a flow leads to no span");
      }
    }
  }

  ConstColumn<std::uint64_t> s_lane_;
  ConstColumn<std::int32_t> s_name_, s_category_, s_domain_, s_timing_;
  ConstColumn<std::int64_t> s_start_, s_dur_, s_correlation_, s_external_;
  ConstColumn<std::int32_t> s_iteration_, s_run_;
  ConstColumn<std::uint64_t> i_lane_;
  ConstColumn<std::int32_t> i_name_, i_category_, i_domain_;
  ConstColumn<std::int64_t> i_ts_;
  ConstColumn<std::uint64_t> c_lane_;
  ConstColumn<std::int64_t> c_ts_;
  ConstColumn<double> c_value_;
  ConstColumn<std::int64_t> f_source_, f_target_;
  std::unique_ptr<pf::Encoder> encoder_;
};

}  // namespace

NB_MODULE(perfetto, m) {
  m.doc() = "Perfetto protobuf traces, read and written as columns.";
  translate_failures();

  nb::class_<Decoded>(m, "Decoded",
                      "A decoded trace. Each column method hands its arrays over and may be called once.")
      .def("strings", &Decoded::strings, "Table of strings; codes in the columns are its rows, -1 none.")
      .def("spans", &Decoded::spans, "Columns of the slices, in the order of the events that begin them.")
      .def("instants", &Decoded::instants, "Columns of instants and of slices without an end.")
      .def("counters", &Decoded::counters, "Columns of counter values, on the counters' tracks.")
      .def("flows", &Decoded::flows, "Columns of flows between rows of the spans.")
      .def("tracks", &Decoded::tracks, "Columns of the tracks.")
      .def("problems", &Decoded::problems, "Problem -> (how often, byte offset of the first or None).")
      .def("accounting", &Decoded::accounting,
           "What became of every packet, as (packets, bytes) by field of TracePacket or by problem.")
      .def("metadata", &Decoded::metadata, "(name, text) of the trace's metadata.")
      .def("span_arguments", &Decoded::span_arguments, nb::arg("rows"), "JSON object of each span, as bytes.")
      .def("instant_arguments", &Decoded::instant_arguments, nb::arg("rows"),
           "JSON object of each instant, as bytes.")
      .def_prop_ro("clock", &Decoded::clock, "Id of the clock that the times are on.")
      .def_prop_ro("unix_offset", &Decoded::unix_offset,
                   "Unix time less time on that clock, in ns; None unknown.")
      .def_prop_ro("packets", &Decoded::packets, "Number of packets.");

  m.def(
      "decode",
      [](const nb::bytes& data) {
        const pf::Bytes bytes = view_of(data);
        pf::Trace trace = [&] {
          nb::gil_scoped_release released;
          return pf::decode(bytes);
        }();
        return std::make_unique<Decoded>(std::move(trace));
      },
      nb::arg("data"), "Decode a whole trace; compressed packets have to be unpacked before.");

  m.def(
      "find_compressed",
      [](const nb::bytes& data) {
        nb::list out;
        for (const auto& found : pf::find_compressed(view_of(data))) {
          out.append(nb::make_tuple(found.begin, found.end, found.content, found.size, found.zstd));
        }
        return out;
      },
      nb::arg("data"),
      "Return (begin and end of the packet, begin and size of the compressed bytes, whether they are "
      "zstandard).");

  m.def(
      "assign_lanes",
      [](const ConstColumn<std::int32_t>& track, const ConstColumn<std::int64_t>& start,
         const ConstColumn<std::int64_t>& dur) {
        if (track.shape(0) != start.shape(0) || track.shape(0) != dur.shape(0)) {
          throw nb::value_error("track, start_ns and dur_ns differ in length");
        }
        std::vector<std::int32_t> lanes = [&] {
          nb::gil_scoped_release released;
          return pf::assign_lanes(view(track), view(start), view(dur));
        }();
        return give(std::move(lanes));
      },
      nb::arg("track"), nb::arg("start_ns"), nb::arg("dur_ns"),
      "Return for each span a lane of its track on which spans nest; 0 is the track itself.");

  nb::class_<Writer>(m, "Writer", "Columns on their way into a trace.")
      .def(nb::init<const nb::dict&, const nb::dict&, const nb::dict&, const nb::dict&,
                    std::vector<std::string>, std::vector<std::string>, std::vector<std::string>,
                    std::int64_t>(),
           nb::arg("spans"), nb::arg("instants"), nb::arg("counters"), nb::arg("flows"), nb::arg("names"),
           nb::arg("categories"), nb::arg("runs"), nb::arg("origin_ns"))
      .def("set_arguments", &Writer::set_arguments, nb::arg("arguments"))
      .def("head", &Writer::head, nb::arg("tracks"), nb::arg("unix_ns").none(), nb::arg("metadata_name"),
           nb::arg("metadata"))
      .def("packets", &Writer::packets, nb::arg("begin"), nb::arg("end"))
      .def("written_rows", &Writer::written_rows, "Rows of the spans in the order of the trace.")
      .def_prop_ro("events", &Writer::events)
      .def_prop_ro("flows_left_out", &Writer::flows_left_out);
}
