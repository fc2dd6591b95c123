// Module torchtrt_viz._native.capture: programs, the process-wide configuration, recordings, clocks, writers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/capture_values.hpp"
#include "bindings/engine_handle.hpp"
#include "bindings/handover.hpp"
#include "core/blob.hpp"
#include "core/config.hpp"
#include "core/instrumented_engine.hpp"
#include "core/recorder.hpp"
#include "core/sidecar.hpp"
#include "executorch/delegate.hpp"
#include "executorch/engine_factory.hpp"
#include "executorch/program.hpp"
#include "executorch/proxy_delegate.hpp"
#include "executorch/ticks.hpp"
#include "formats/engine/trex_profile.hpp"
#include "formats/kineto/trace_json.hpp"
#include "formats/perfetto/trace_protobuf.hpp"

namespace tv = torchtrt_viz;
namespace et = torchtrt_viz::et;
namespace nb = nanobind;
using namespace nb::literals;
using namespace torchtrt_viz::bindings;

namespace {

std::vector<et::InputValue> take_inputs(const nb::sequence& inputs, std::vector<nb::object>& keep) {
  std::vector<et::InputValue> out;
  std::size_t i = 0;
  for (const nb::handle item : inputs) out.push_back(take_input(item, i++, keep));
  return out;
}

template <typename Work>
auto released(Work&& work) {
  const nb::gil_scoped_release gil;
  return work();
}

// Python's session: what it calls may wait, so the interpreter is let go first.
class Session {
 public:
  Session(const std::string& path, const et::LoadOptions& options, et::Program::Settings settings) {
    const nb::gil_scoped_release released;
    program_ = et::Program::load(path, options, settings);
  }
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  et::Program& program() { return *program_; }

  nb::dict method_meta(const std::string& method) {
    return give_method(released([&] { return program_->describe(method); }));
  }

  void load_method(const std::string& method) {
    released([&] { program_->load_method(method); });
  }

  bool is_loaded(const std::string& method) {
    const nb::gil_scoped_release released;
    return program_->is_loaded(method);
  }

  nb::list run(const std::string& method, const nb::sequence& inputs) {
    std::vector<nb::object> keep;  // what the inputs point into
    const auto values = take_inputs(inputs, keep);
    auto outputs = released([&] { return program_->run(method, values); });
    nb::list out;
    for (auto& value : outputs) out.append(give_output(std::move(value)));
    return out;
  }

  bool recording() const { return program_->log() != nullptr && program_->log()->recording(); }
  void set_recording(bool on) {
    if (program_->log() != nullptr) program_->log()->set_recording(on);
  }

  nb::bytes etdump(std::size_t first_block) {
    const auto bytes = released([&] { return program_->etdump(first_block); });
    return nb::bytes(bytes.data(), bytes.size());
  }

  nb::list blocks() {
    nb::list out;
    auto* log = program_->log();
    if (log == nullptr) return out;
    std::vector<std::uint64_t> counts;
    std::vector<std::string> names;
    const auto rows = log->blocks(counts, names);
    for (std::size_t i = 0; i < rows.size(); ++i) out.append(give_block(rows[i], names[i], counts[i]));
    return out;
  }

  std::size_t event_count() { return program_->log() == nullptr ? 0 : program_->log()->event_count(); }

  void clear() {
    const nb::gil_scoped_release released;
    program_->clear();
  }

  nb::list engines() { return give_engines(program_->engines()); }

  nb::list anchors() {
    nb::list out;
    for (const auto& [what, anchor] : program_->anchors()) out.append(give_anchor(what, anchor));
    return out;
  }

  void close() {
    if (!program_) return;
    const nb::gil_scoped_release released;
    program_->close();
  }

 private:
  std::unique_ptr<et::Program> program_;
};

void bind_session(nb::module_& m) {
  nb::class_<Session>(m, "Session", "A loaded .pte: module, tracer and engines, which live and die together.")
      .def(
          "__init__",
          [](Session* self, const std::string& path, const et::LoadOptions& options, bool trace,
             bool method_only, bool load_methods, bool mmap, bool share_memory) {
            new (self) Session(path, options, {trace, method_only, load_methods, mmap, share_memory});
          },
          "pte_path"_a, "options"_a = et::LoadOptions{}, nb::kw_only(), "trace"_a = true,
          "method_only"_a = false, "load_methods"_a = true, "mmap"_a = true, "share_memory"_a = false)
      .def_prop_ro("path", [](Session& self) { return self.program().path(); })
      .def_prop_ro("traced", [](Session& self) { return self.program().traced(); })
      .def("methods", [](Session& self) { return self.program().methods(); })
      .def("method_meta", &Session::method_meta, "method"_a)
      .def("load_method", &Session::load_method, "method"_a)
      .def("is_loaded", &Session::is_loaded, "method"_a)
      .def("run", &Session::run, "method"_a, "inputs"_a = nb::make_tuple())
      .def_prop_rw("recording", &Session::recording, &Session::set_recording)
      .def("etdump", &Session::etdump, "first_block"_a = 0)
      .def("blocks", &Session::blocks)
      .def("event_count", &Session::event_count)
      .def("clear", &Session::clear)
      .def("engines", &Session::engines)
      .def("anchors", &Session::anchors)
      .def("close", &Session::close)
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](Session& self, const nb::args&) { self.close(); });
}

void bind_configuration(nb::module_& m) {
  m.def("get_profile", [] {
    const auto config = tv::config_snapshot();
    nb::dict out;
    out["execution"] = config.execution;
    out["level"] = tv::level_name(config.level);
    out["format"] = tv::format_name(config.format);
    out["path_prefix"] = config.path_prefix;
    out["generation"] = config.generation;
    return out;
  });
  m.def(
      "set_profile",
      [](std::optional<bool> execution, std::optional<std::string> level, std::optional<std::string> format,
         std::optional<std::string> path_prefix) {
        return tv::change_config({execution, std::move(level), std::move(format), std::move(path_prefix)});
      },
      nb::kw_only(), "execution"_a = nb::none(), "level"_a = nb::none(), "format"_a = nb::none(),
      "path_prefix"_a = nb::none());
  m.def("reset_profile", &tv::reset_config);
  m.def(
      "set_rank", [](std::optional<std::int64_t> rank) { tv::set_rank(rank.value_or(-1)); }, "rank"_a.none());
  m.def("apply_profile", [] {
    const nb::gil_scoped_release released;
    tv::InstrumentedEngine::apply_everywhere();
  });
  m.def("flush_sidecars", [] { released([] { tv::flush_sidecars(); }); });
  m.def("engines", [] {
    std::vector<tv::EngineInfo> infos;
    for (const auto& entry : tv::registered_engines()) infos.push_back(entry->info());
    return give_engines(infos);
  });
}

void bind_backends(nb::module_& m) {
  m.def("registered_backends", &et::registered_backends);
  m.def("delegate_status", [] {
    const auto& registration = et::delegate_registration();
    nb::dict out;
    out["status"] = registration.registered ? "registered" : "taken";
    out["detail"] = registration.detail;
    return out;
  });
  m.def(
      "wrap_backend",
      [](const std::string& backend, const std::string& wrapper) { et::wrap_backend(backend, wrapper); },
      "backend"_a, "wrapper"_a);
  m.def("proxies", [] {
    nb::list out;
    for (const auto& [wrapper, backend] : et::proxies()) {
      nb::dict row;
      row["wrapper"] = wrapper;
      row["backend"] = backend;
      out.append(row);
    }
    return out;
  });
  m.def(
      "rename_backends",
      [](const nb::bytes& program, const std::map<std::string, std::string>& names) {
        std::string copy(program.c_str(), program.size());
        const auto renamed = et::rename_backends(std::as_writable_bytes(std::span(copy)), names);
        return nb::make_tuple(nb::bytes(copy.data(), copy.size()), renamed);
      },
      "program"_a, "names"_a);
  m.def("load_library", [](const std::string& path) { released([&] { et::load_library(path); }); }, "path"_a);
}

void bind_recording(nb::module_& m) {
  nb::class_<tv::Recording>(m, "Recording",
                            "Collects the spans of every engine of the process until stopped.")
      .def(nb::init<std::size_t>(), "capacity"_a = std::size_t{1} << 22U)
      .def("stop", [](tv::Recording& self) { return give_columns(self.stop()); });
}

void bind_process(nb::module_& m) {
  m.def("clock_anchor", [] { return give_anchor("now", et::clock_anchor()); });
  m.def("built_with", [] {
    nb::dict out;
    out["executorch"] = TORCHTRT_VIZ_EXECUTORCH_VERSION;
    out["simdjson"] = TORCHTRT_VIZ_SIMDJSON_VERSION;
    out["compiler"] = "GNU " __VERSION__;
    return out;
  });
  m.def(
      "parse_blob",
      [](const nb::bytes& bytes) {
        return give_blob(tv::parse_blob({static_cast<const std::byte*>(bytes.data()), bytes.size()}));
      },
      "blob"_a);
  m.def(
      "event_cost_ns",
      [](std::size_t events) {
        const nb::gil_scoped_release released;
        return et::event_cost_ns(events);
      },
      "events"_a = 20000);
  m.def("tensorrt_problem", [] { return released([] { return tv::tensorrt_problem(); }); });
  m.attr("TENSORRT_ENGINE") = tv::has_tensorrt_engine();
}

nb::bytes write_spans(const std::string& format, const std::vector<std::string>& names,
                      const ConstColumn<std::int32_t>& name,
                      const std::vector<std::tuple<std::int64_t, std::string, std::string>>& tracks,
                      const ConstColumn<std::int32_t>& track, const ConstColumn<std::int64_t>& start_ns,
                      const ConstColumn<std::int64_t>& dur_ns, const std::vector<std::string>& categories,
                      std::optional<ConstColumn<std::int32_t>> category, std::vector<std::string> args,
                      const std::string& metadata, std::optional<std::int64_t> unix_base_ns) {
  if (format != "json" && format != "protobuf") {
    throw tv::Error::refused("format", format, "'" + format + "'", "choose json or protobuf");
  }
  tv::TraceTable table;
  table.names = names;
  table.categories = categories;
  for (const auto& [pid, process, thread] : tracks) table.tracks.push_back({pid, process, thread});
  table.name = view(name);
  table.track = view(track);
  table.start_ns = view(start_ns);
  table.dur_ns = view(dur_ns);
  if (category) table.category = view(*category);
  table.args = std::move(args);
  const auto out = released([&] {
    return format == "json" ? tv::trace_json(table, metadata) : tv::trace_protobuf(table, unix_base_ns);
  });
  return nb::bytes(out.data(), out.size());
}

void bind_writers(nb::module_& m) {
  m.def(
      "trex_profile",
      [](std::int64_t calls, const std::vector<std::string>& names, const ConstColumn<std::int64_t>& total_ns,
         std::optional<ConstColumn<std::int64_t>> median_ns) {
        if (total_ns.shape(0) != names.size() || (median_ns && median_ns->shape(0) != names.size())) {
          throw nb::value_error("names, total_ns and median_ns differ in length");
        }
        std::vector<tv::LayerTotal> rows;
        rows.reserve(names.size());
        for (std::size_t i = 0; i < names.size(); ++i) {
          rows.push_back({names[i], total_ns.data()[i],
                          median_ns ? std::optional<std::int64_t>(median_ns->data()[i]) : std::nullopt});
        }
        const auto text = tv::trex_profile(calls, rows);
        return nb::bytes(text.data(), text.size());
      },
      "calls"_a, "names"_a, "total_ns"_a, "median_ns"_a = nb::none());
  m.def("write_spans", &write_spans, "format"_a, nb::kw_only(), "names"_a, "name"_a, "tracks"_a, "track"_a,
        "start_ns"_a, "dur_ns"_a, "categories"_a = std::vector<std::string>{}, "category"_a = nb::none(),
        "args"_a = std::vector<std::string>{}, "metadata"_a = "", "unix_base_ns"_a = nb::none());
}

}  // namespace

NB_MODULE(capture, m) {
  m.doc() = "The capture extension: programs, the delegate, the process-wide configuration, clocks, writers.";
  translate_failures();
  bind_session(m);
  bind_configuration(m);
  bind_backends(m);
  bind_recording(m);
  bind_process(m);
  bind_writers(m);
  bind_engine_handle(m);
}
