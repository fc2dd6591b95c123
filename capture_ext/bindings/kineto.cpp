// Module torchtrt_viz._native.kineto: trace-event JSON as columns.
#include <Python.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"
#include "formats/kineto/argument.hpp"
#include "formats/kineto/decoder.hpp"
#include "formats/kineto/encode.hpp"
#include "formats/kineto/locate.hpp"
#include "formats/kineto/text.hpp"

namespace kineto = torchtrt_viz::kineto;
namespace nb = nanobind;
using namespace torchtrt_viz::bindings;

namespace {

using torchtrt_viz::bindings::give;

nb::tuple give(kineto::Encoded&& encoded) {
  nb::list categories = texts(encoded.categories);
  nb::object codes =
      std::visit([](auto& column) { return nb::object(nb::cast(give(std::move(column)))); }, encoded.codes);
  return nb::make_tuple(categories, codes);
}

// Holds a buffer of any bytes-like object while C++ reads it.
class Bytes {
 public:
  explicit Bytes(const nb::handle& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  [[nodiscard]] std::string_view view() const {
    return {static_cast<const char*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

nb::object text_or_none(std::uint32_t code, const torchtrt_viz::Interner& strings) {
  if (code == torchtrt_viz::Interner::kNone) return nb::none();
  return text(kineto::unescape(strings.text(code)).text);
}

using Categories = nb::dict;
using Rule = std::tuple<std::string, std::string, int, int>;

kineto::NameRule::How how_of(const std::string& word) {
  using How = kineto::NameRule::How;
  if (word == "equals") return How::equals;
  if (word == "starts") return How::starts;
  if (word == "contains") return How::contains;
  throw torchtrt_viz::Error::refused("rule", word, "'" + word + "'", "choose equals, starts or contains");
}

kineto::Options options_of(const nb::dict& categories, const std::vector<Rule>& rules,
                           std::pair<int, int> other, int step_kind,
                           const std::vector<std::string>& kept_keys, std::size_t window) {
  if (rules.size() > 32) throw nb::value_error("at most 32 rules");
  if (window < 64) throw nb::value_error("window is at least 64 bytes");
  const auto meaning = [](std::pair<int, int> kind_and_domain) {
    return kineto::Meaning{static_cast<std::uint8_t>(kind_and_domain.first),
                           static_cast<std::int8_t>(kind_and_domain.second)};
  };
  kineto::Options options;
  for (const auto& [name, value] : categories) {
    options.vocabulary.categories.emplace(nb::cast<std::string>(name),
                                          meaning(nb::cast<std::pair<int, int>>(value)));
  }
  for (const auto& [how, text, from, to] : rules) {
    kineto::NameRule rule;
    rule.how = how_of(how);
    rule.text = text;
    rule.from = static_cast<std::uint8_t>(from);
    rule.to = static_cast<std::uint8_t>(to);
    options.vocabulary.rules.push_back(std::move(rule));
  }
  options.vocabulary.other = meaning(other);
  options.vocabulary.step_kind = static_cast<std::uint8_t>(step_kind);
  options.kept_keys.insert(kept_keys.begin(), kept_keys.end());
  options.window = window;
  return options;
}

nb::dict spans_of(kineto::Decoder& decoder, kineto::Encoded&& names) {
  kineto::Spans& spans = decoder.tables().spans;
  auto& nesting = decoder.nesting();
  nb::dict out;
  out["name"] = give(std::move(names));
  out["kind"] = give(std::move(spans.kind));
  out["domain"] = give(std::move(spans.domain));
  out["track"] = give(std::move(spans.lane));
  out["start_ns"] = give(std::move(spans.start));
  out["dur_ns"] = give(std::move(spans.dur));
  out["self_ns"] = give(std::move(nesting.self_ns));
  out["depth"] = give(std::move(nesting.depth));
  out["parent"] = give(std::move(nesting.parent));
  out["correlation"] = give(std::move(spans.correlation));
  out["external_id"] = give(std::move(spans.external_id));
  out["iteration"] = give(std::move(decoder.iteration()));
  out["offset"] = give(std::move(spans.at));
  return out;
}

nb::dict instants_of(kineto::Decoder& decoder, kineto::Encoded&& names) {
  kineto::Instants& instants = decoder.tables().instants;
  nb::dict out;
  out["name"] = give(std::move(names));
  out["kind"] = give(std::move(instants.kind));
  out["domain"] = give(std::move(instants.domain));
  out["state"] = give(std::move(instants.state));
  out["track"] = give(std::move(instants.lane));
  out["ts_ns"] = give(std::move(instants.ts));
  out["offset"] = give(std::move(instants.at));
  return out;
}

nb::dict counters_of(kineto::Decoder& decoder) {
  kineto::Collector& tables = decoder.tables();
  const kineto::Strings& strings = decoder.strings();
  nb::list series;
  for (const kineto::SeriesName& name : tables.series_names) {
    series.append(nb::make_tuple(text_or_none(name.counter, strings.names),
                                 text_or_none(name.series, strings.names),
                                 text(kineto::unescape(name.id).text), name.memory));
  }
  nb::dict out;
  out["series"] = series;
  out["code"] = give(std::move(tables.counters.counter));
  out["track"] = give(std::move(tables.counters.lane));
  out["ts_ns"] = give(std::move(tables.counters.ts));
  out["value"] = give(std::move(tables.counters.value));
  return out;
}

nb::dict flows_of(kineto::Decoder& decoder, kineto::Encoded&& names) {
  kineto::Flows& flows = decoder.flows();
  nb::dict out;
  out["name"] = give(std::move(names));
  out["source"] = give(std::move(flows.source));
  out["target"] = give(std::move(flows.target));
  out["id"] = give(std::move(flows.id));
  return out;
}

nb::list tracks_of(const kineto::Decoder& decoder) {
  static constexpr const char* kTypes[] = {"thread", "stream", "async", "counter"};
  const kineto::Strings& strings = decoder.strings();
  nb::list out;
  for (const kineto::Lane& lane : decoder.lanes().all()) {
    nb::object device = nb::none();
    if (lane.device != kineto::Lane::kNoDevice) device = nb::int_(lane.device);
    out.append(nb::make_tuple(
        kTypes[static_cast<std::size_t>(lane.type)], text_or_none(lane.process, strings.idents),
        text_or_none(lane.thread, strings.idents), text_or_none(lane.label, strings.names), device));
  }
  return out;
}

nb::list labels_of(kineto::Decoder& decoder) {
  const kineto::Strings& strings = decoder.strings();
  nb::list out;
  for (const kineto::Label& label : decoder.tables().labels) {
    nb::object sort_index = nb::none();
    if (label.has_sort_index) sort_index = nb::int_(label.sort_index);
    out.append(nb::make_tuple(text_or_none(label.process, strings.idents),
                              text_or_none(label.thread, strings.idents), label.of_thread, text(label.name),
                              text(label.labels), sort_index));
  }
  return out;
}

nb::dict notes_of(const kineto::Notes& notes) {
  nb::dict out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kineto::Note::count_); ++i) {
    const auto note = static_cast<kineto::Note>(i);
    if (notes[note].count != 0) {
      out[kineto::note_code(note)] = nb::make_tuple(notes[note].count, notes[note].first);
    }
  }
  return out;
}

nb::dict finish(kineto::Decoder& decoder) {
  kineto::Notes notes;
  kineto::Encoded span_names;
  kineto::Encoded instant_names;
  kineto::Encoded flow_names;
  {
    nb::gil_scoped_release released;
    decoder.finish();
    kineto::Collector& tables = decoder.tables();
    notes = decoder.notes();
    const kineto::Strings& strings = decoder.strings();
    span_names = kineto::encode(std::move(tables.spans.name), strings.names, tables.spans.at, notes);
    instant_names = kineto::encode(std::move(tables.instants.name), strings.names, tables.instants.at, notes);
    flow_names = kineto::encode(std::move(decoder.flows().category), strings.categories, {}, notes);
  }
  kineto::Collector& tables = decoder.tables();
  const kineto::Strings& strings = decoder.strings();
  nb::dict categories;
  for (std::uint32_t code = 0; code < tables.category_counts.size(); ++code) {
    categories[text_or_none(code, strings.categories)] = tables.category_counts[code];
  }
  nb::list values;
  for (const auto& [key, value] : decoder.top().values) {
    values.append(nb::make_tuple(text(kineto::unescape(key).text), bytes_of(value)));
  }
  std::vector<std::int64_t> end_rows;
  std::vector<std::int64_t> end_offsets;
  for (const kineto::EndOffset& end : tables.end_offsets) {
    end_rows.push_back(end.row);
    end_offsets.push_back(end.at);
  }
  nb::dict out;
  out["events"] = tables.events;
  out["bytes"] = decoder.bytes();
  out["is_json"] = decoder.top().is_json();
  out["complete"] = decoder.top().complete();
  out["saw_events"] = decoder.top().saw_events();
  out["bare_list"] = decoder.top().bare_list();
  out["values"] = values;
  nb::list skipped;
  for (const auto& [key, bytes] : decoder.top().skipped) {
    skipped.append(nb::make_tuple(text(kineto::unescape(key).text), bytes));
  }
  out["skipped_keys"] = skipped;
  out["more_skipped_keys"] = decoder.top().more_skipped;
  out["categories"] = categories;
  out["notes"] = notes_of(notes);
  out["labels"] = labels_of(decoder);
  out["tracks"] = tracks_of(decoder);
  const kineto::Counts& counts = tables.counts;
  nb::dict accounting;
  accounting["complete"] = counts.complete;
  accounting["instants"] = counts.instants;
  accounting["counters"] = counts.counters;
  accounting["flows"] = counts.flows;
  accounting["begins"] = counts.begins;
  accounting["ends"] = counts.ends;
  accounting["metadata"] = counts.metadata;
  accounting["left_out"] = counts.left_out;
  out["counts"] = accounting;
  out["unclosed_calls"] = give(std::vector<std::int64_t>(decoder.unclosed_calls()));
  out["end_rows"] = give(std::move(end_rows));
  out["end_offsets"] = give(std::move(end_offsets));
  out["spans"] = spans_of(decoder, std::move(span_names));
  out["instants"] = instants_of(decoder, std::move(instant_names));
  out["counters"] = counters_of(decoder);
  out["flows"] = flows_of(decoder, std::move(flow_names));
  return out;
}

nb::list events_at(const nb::handle& block, std::uint64_t base, const ConstColumn<std::int64_t>& offsets,
                   bool last) {
  const Bytes held(block);
  const std::string_view bytes = held.view();
  const char* const end = bytes.data() + bytes.size();
  kineto::Mender mender;
  nb::list out;
  for (const std::int64_t offset : view(offsets)) {
    const std::uint64_t at = static_cast<std::uint64_t>(offset) - base;
    if (offset < 0 || at >= bytes.size()) throw nb::value_error("an offset lies outside the block");
    std::string_view found;
    switch (kineto::locate_event(bytes.data() + at, end, last, mender, found)) {
      case kineto::Located::found:
        out.append(bytes_of(found));
        break;
      case kineto::Located::need_more:
        out.append(nb::none());
        break;
      case kineto::Located::lost:
        out.append(bytes_of({}));
        break;
    }
  }
  return out;
}

// Codes of one argument's values: -1 the event has no such argument, -2 its text cannot be followed.
nb::tuple argument_texts(const nb::list& events, const std::string& key) {
  torchtrt_viz::Interner values;
  std::vector<std::int32_t> codes;
  codes.reserve(events.size());
  std::string value;
  for (const nb::handle event : events) {
    const auto bytes = nb::cast<nb::bytes>(event);
    switch (kineto::find_argument({bytes.c_str(), bytes.size()}, key, value)) {
      case kineto::Argument::found:
        codes.push_back(static_cast<std::int32_t>(values.code(value)));
        break;
      case kineto::Argument::absent:
        codes.push_back(-1);
        break;
      case kineto::Argument::unclear:
        codes.push_back(-2);
        break;
    }
  }
  nb::list texts;
  for (std::uint32_t code = 0; code < values.size(); ++code) texts.append(bytes_of(values.text(code)));
  return nb::make_tuple(give(std::move(codes)), texts);
}

}  // namespace

NB_MODULE(kineto, m) {
  m.doc() = "Trace-event JSON (Kineto, Chrome) as columns.";
  translate_failures();

  nb::class_<kineto::Decoder>(m, "Decoder", "Decodes one file, piece by piece, without holding it.")
      .def(
          "__init__",
          [](kineto::Decoder* self, const nb::dict& categories, const std::vector<Rule>& rules,
             std::pair<int, int> other, int step_kind, const std::vector<std::string>& kept_keys,
             std::size_t window) {
            new (self) kineto::Decoder(options_of(categories, rules, other, step_kind, kept_keys, window));
          },
          nb::kw_only(), nb::arg("categories"), nb::arg("rules"), nb::arg("other"), nb::arg("step_kind"),
          nb::arg("kept_keys"), nb::arg("window") = std::size_t{1} << 20,
          "categories: category -> (kind, domain), domain -1 for not said; rules: (how, text, from kind, to\n"
          "kind) with how one of equals, starts, contains; other: meaning of any other category; kept_keys:\n"
          "top-level keys whose values are returned, all others are passed over.")
      .def(
          "feed",
          [](kineto::Decoder& self, const nb::handle& block) {
            const Bytes held(block);
            nb::gil_scoped_release released;
            self.feed(held.view());
          },
          nb::arg("block"), "Take the next piece of the uncompressed content (bytes-like).")
      .def(
          "read",
          [](kineto::Decoder& self, int descriptor, std::size_t most) {
            nb::gil_scoped_release released;
            return self.read(descriptor, most);
          },
          nb::arg("descriptor"), nb::arg("most"),
          "Read up to `most` bytes from a file descriptor; returns how many came, 0 at the end.")
      .def("finish", &finish, "End the file and return its tables. Call once.");

  m.def("events_at", &events_at, nb::arg("block"), nb::arg("base"), nb::arg("offsets"), nb::arg("last"),
        "Return the JSON text of the events at `offsets` of a block that begins at byte `base` of the file:\n"
        "bytes; None where the block ends too early; b\"\" where the event cannot be told.");
  m.def(
      "argument_texts", &argument_texts, nb::arg("events"), nb::arg("key"),
      "Return (codes, texts) of one argument of events given as the JSON text of each: a code per event, -1\n"
      "where it has no such argument and -2 where the text is not plain JSON, and the distinct values' "
      "text.");
  m.def(
      "normalize",
      [](const nb::handle& event, std::size_t depth) {
        const Bytes held(event);
        kineto::Mender mender;
        return bytes_of(kineto::normalize_event(held.view(), depth, mender));
      },
      nb::arg("event"), nb::arg("depth") = 200,
      "Return an event's text so that Python's json module reads it; b\"\" when it cannot be mended.");
}
