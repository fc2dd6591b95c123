// Class Engine of the capture module: one engine without a program, on memory of the host or the device.
#include "bindings/engine_handle.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/capture_values.hpp"
#include "core/clock.hpp"
#include "executorch/loaded_engine.hpp"

namespace torchtrt_viz::bindings {
namespace {

using namespace nb::literals;

// Memory as Python describes it.
struct Memory {
  std::uintptr_t address;
  std::string dtype;
  std::vector<std::int64_t> shape;
  bool on_device;
  std::size_t bytes;
};

Memory take_memory(nb::handle item) {
  const auto memory = nb::cast<nb::tuple>(item);
  return {nb::cast<std::uintptr_t>(memory[0]), nb::cast<std::string>(memory[1]),
          nb::cast<std::vector<std::int64_t>>(memory[2]), nb::cast<bool>(memory[3]),
          nb::cast<std::size_t>(memory[4])};
}

void describe(const Memory& memory, const std::string& what, TensorView& out) {
  const auto dtype = parse_dtype(memory.dtype);
  if (!dtype || memory.shape.size() > kMaxDims) {
    throw Error(Code::invalid_type,
                what + " has type " + memory.dtype + " or a rank that engines do not take");
  }
  out.data = reinterpret_cast<void*>(memory.address);
  out.dtype = *dtype;
  out.device = memory.on_device ? DeviceKind::cuda : DeviceKind::host;
  out.sizes = Dims(memory.shape);
}

void fit(OutputView& view, const Dims& sizes) {
  const auto bytes = static_cast<std::size_t>(sizes.elements()) * dtype_size(view.dtype);
  if (bytes > view.capacity) {
    throw Error(Code::invalid_argument, "an output takes " + std::to_string(bytes) + " bytes for shape " +
                                            to_text(sizes) + ", there is room for " +
                                            std::to_string(view.capacity));
  }
  view.sizes = sizes;
}

// Host memory that the call allocates for an output.
struct Made {
  std::unique_ptr<std::byte[]> data;
};

void make_room(OutputView& view, const Dims& sizes) {
  auto& made = *static_cast<Made*>(view.owner);
  const auto bytes = static_cast<std::size_t>(sizes.elements()) * dtype_size(view.dtype);
  if (!made.data || bytes > view.capacity) {
    made.data = std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1));
    view.data = made.data.get();
    view.capacity = bytes;
  }
  view.sizes = sizes;
}

et::OutputTensor as_tensor(const OutputView& view, Made& made) {
  et::OutputTensor out;
  out.dtype = view.dtype;
  out.data = std::move(made.data);
  out.sizes.assign(view.sizes.sizes().begin(), view.sizes.sizes().end());
  out.strides.resize(out.sizes.size());
  std::int64_t stride = 1;
  for (std::size_t d = out.sizes.size(); d-- > 0;) {
    out.strides[d] = stride;
    stride *= std::max<std::int64_t>(out.sizes[d], 1);
  }
  return out;
}

class EngineHandle {
 public:
  EngineHandle(const nb::bytes& blob, const std::string& name,
               const std::map<std::string, std::string>& options) {
    InstrumentedEngine::Options settings;
    auto& load = settings.load;
    for (const auto& [key, value] : options) {
      if (key == kLevelKey) {
        load.level = parse_level(key, value);
      } else if (key == kFormatKey) {
        load.format = parse_format(key, value);
      } else if (key == kPathPrefixKey) {
        check_path_prefix(key, value);
        load.path_prefix = value;
      } else {
        throw Error::refused(
            "engine", key, "'" + key + "'",
            std::string("choose ") + kLevelKey + ", " + kFormatKey + " or " + kPathPrefixKey);
      }
    }
    const std::span bytes(static_cast<const std::byte*>(blob.data()), blob.size());
    {
      const nb::gil_scoped_release released;
      loaded_ = load_engine(bytes, name, "python", std::move(settings));
    }
    entry_ = loaded_.engine->entry();
    const auto& engine = loaded_.engine->engine();
    inputs_.assign(engine.inputs().begin(), engine.inputs().end());
    outputs_.assign(engine.outputs().begin(), engine.outputs().end());
  }
  ~EngineHandle() { close(); }
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  nb::list run(const nb::sequence& inputs, const nb::sequence& outputs, std::uintptr_t stream) {
    std::vector<TensorView> in;
    std::vector<OutputView> out;
    std::vector<std::optional<Memory>> given;
    for (const nb::handle item : inputs) {
      const std::string what = "input " + std::to_string(in.size());
      describe(take_memory(item), what, in.emplace_back());
    }
    for (const nb::handle item : outputs) {
      if (item.is_none()) {
        given.emplace_back();
      } else {
        given.emplace_back(take_memory(item));
      }
    }
    std::vector<Made> made(given.size());
    {
      const nb::gil_scoped_release released;
      const std::lock_guard lock(mutex_);
      call(in, given, made, out, stream);
    }
    nb::list results;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (given[i]) {
        results.append(
            nb::cast(std::vector<std::int64_t>(out[i].sizes.sizes().begin(), out[i].sizes.sizes().end())));
      } else {
        results.append(give_output(as_tensor(out[i], made[i])));
      }
    }
    return results;
  }

  nb::dict info() {
    const EngineInfo info = [&] {
      const nb::gil_scoped_release released;
      const std::lock_guard lock(mutex_);
      return entry_->info();
    }();
    return nb::cast<nb::dict>(give_engines({info})[0]);
  }

  nb::list bindings(bool of_inputs) {
    nb::list out;
    for (const auto& binding : of_inputs ? inputs_ : outputs_) {
      nb::dict row;
      row["name"] = binding.name;
      row["dtype"] = std::string(dtype_name(binding.dtype));
      row["shape"] = std::vector<std::int64_t>(binding.sizes.sizes().begin(), binding.sizes.sizes().end());
      out.append(row);
    }
    return out;
  }

  void close() {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    loaded_.engine.reset();
  }

 private:
  // Without the interpreter's lock.
  void call(std::span<const TensorView> in, const std::vector<std::optional<Memory>>& given,
            std::vector<Made>& made, std::vector<OutputView>& out, std::uintptr_t stream) {
    if (!loaded_.engine) throw Error(Code::invalid_argument, "the engine was closed");
    auto& engine = *loaded_.engine;
    const auto entered_ns = engine.may_measure() ? monotonic_ns() : 0;
    const auto infos = engine.engine().outputs();
    if (given.size() != infos.size()) {
      throw Error(Code::invalid_argument, "the engine gives " + std::to_string(infos.size()) +
                                              " outputs, room was given for " + std::to_string(given.size()));
    }
    out.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      out[i].dtype = infos[i].dtype;
      out[i].owner = &made[i];
      out[i].resize = make_room;
      if (!given[i]) continue;
      describe(*given[i], "output " + std::to_string(i), out[i]);
      if (out[i].dtype != infos[i].dtype) {
        throw Error(Code::invalid_type, "output " + std::to_string(i) + " is " +
                                            std::string(dtype_name(infos[i].dtype)) +
                                            ", the memory given for it is " + given[i]->dtype);
      }
      out[i].capacity = given[i]->bytes;
      out[i].resize = fit;
    }
    engine.call(in, out, reinterpret_cast<void*>(stream), nullptr, entered_ns);
  }

  std::mutex mutex_;
  LoadedEngine loaded_;
  // Known after the engine is gone, too.
  std::shared_ptr<EngineEntry> entry_;
  std::vector<BindingInfo> inputs_, outputs_;
};

}  // namespace

void bind_engine_handle(nb::module_& m) {
  nb::class_<EngineHandle>(m, "Engine", "One engine without a program. torchtrt_viz.capture.engine wraps it.")
      .def(nb::init<const nb::bytes&, const std::string&, const std::map<std::string, std::string>&>(),
           "blob"_a, nb::kw_only(), "name"_a = "", "options"_a = std::map<std::string, std::string>{})
      .def("run", &EngineHandle::run, "inputs"_a, "outputs"_a, "stream"_a = std::uintptr_t{0})
      .def("info", &EngineHandle::info)
      .def_prop_ro("inputs", [](EngineHandle& self) { return self.bindings(true); })
      .def_prop_ro("outputs", [](EngineHandle& self) { return self.bindings(false); })
      .def("close", &EngineHandle::close);
}

}  // namespace torchtrt_viz::bindings
