#include "bindings/capture_values.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "bindings/handover.hpp"

namespace torchtrt_viz::bindings {
namespace {

using nb::dlpack::dtype_code;

struct Pair {
  DType dtype;
  dtype_code code;
  std::uint8_t bits;
  bool in_numpy;
};

constexpr Pair kTypes[] = {
    {DType::uint8, dtype_code::UInt, 8, true},           {DType::int8, dtype_code::Int, 8, true},
    {DType::int16, dtype_code::Int, 16, true},           {DType::int32, dtype_code::Int, 32, true},
    {DType::int64, dtype_code::Int, 64, true},           {DType::uint16, dtype_code::UInt, 16, true},
    {DType::uint32, dtype_code::UInt, 32, true},         {DType::uint64, dtype_code::UInt, 64, true},
    {DType::float16, dtype_code::Float, 16, true},       {DType::bfloat16, dtype_code::Bfloat, 16, false},
    {DType::float32, dtype_code::Float, 32, true},       {DType::float64, dtype_code::Float, 64, true},
    {DType::complex32, dtype_code::Complex, 32, false},  {DType::complex64, dtype_code::Complex, 64, true},
    {DType::complex128, dtype_code::Complex, 128, true}, {DType::boolean, dtype_code::Bool, 8, true},
};

nb::object error_class(const char* name) { return nb::module_::import_("torchtrt_viz.errors").attr(name); }

// In the words of the package's errors; `name` and `number` are the runtime's.
void set_python_error(const Error& failure, const std::string& name, std::uint32_t number) {
  nb::object exception;
  if (const auto* refusal = failure.refusal()) {
    exception = error_class("OptionError")(text(refusal->key), text(refusal->value), text(refusal->choices));
  } else {
    exception = error_class("CaptureError")(text(failure.what()));
    exception.attr("error_name") = name;
    exception.attr("code") = number;
  }
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

std::string class_name(nb::handle item) {
  return nb::cast<std::string>(nb::str(item.type().attr("__name__")));
}

bool is_numpy_scalar(nb::handle item) {
  const nb::object generic = nb::module_::import_("numpy").attr("generic");
  return PyObject_IsInstance(item.ptr(), generic.ptr()) == 1;
}

et::InputTensor take_tensor(nb::handle item, std::size_t i, std::vector<nb::object>& keep) {
  using Array = nb::ndarray<nb::ro, nb::device::cpu>;
  Array array;
  if (!nb::try_cast(item, array, false)) {
    const std::string text =
        "input " + std::to_string(i) + " is a " + class_name(item) +
        ": expected a number or a tensor in host memory (numpy array, or anything with __dlpack__; a torch "
        "tensor "
        "needs .detach() where it requires a gradient and .cpu() where it is on a device)";
    throw nb::type_error(text.c_str());
  }
  et::InputTensor out;
  const auto type = array.dtype();
  bool known = false;
  for (const auto& pair : kTypes) {
    if (type.lanes == 1 && type.code == static_cast<std::uint8_t>(pair.code) && type.bits == pair.bits) {
      out.view.dtype = pair.dtype;
      known = true;
    }
  }
  if (!known || array.ndim() > kMaxDims) {
    const std::string text =
        "input " + std::to_string(i) + " has a dtype or a rank that ExecuTorch does not have";
    throw nb::type_error(text.c_str());
  }
  for (std::size_t d = 0; d < array.ndim(); ++d) {
    out.view.sizes.push_back(static_cast<std::int64_t>(array.shape(d)));
    out.strides.push_back(array.stride(d));
  }
  // The runtime takes inputs that it may write (a cache updated in place); the caller knows which.
  out.view.data = const_cast<void*>(static_cast<const void*>(array.data()));
  keep.push_back(nb::cast(array));
  keep.push_back(nb::borrow(item));
  return out;
}

nb::object give_tensor(et::OutputTensor&& tensor) {
  const Pair* found = nullptr;
  for (const auto& pair : kTypes) {
    if (pair.dtype == tensor.dtype) found = &pair;
  }
  if (found == nullptr) {
    const std::string text = "an output is " + std::string(dtype_name(tensor.dtype)) + ", which DLPack lacks";
    throw nb::type_error(text.c_str());
  }
  const nb::dlpack::dtype type{static_cast<std::uint8_t>(found->code), found->bits, 1};
  std::vector<std::size_t> shape(tensor.sizes.begin(), tensor.sizes.end());
  std::byte* data = tensor.data.get();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
  (void)tensor.data.release();
  if (found->in_numpy) {
    return nb::cast(
        nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, tensor.strides.data(), type));
  }
  return nb::cast(nb::ndarray<>(data, shape.size(), shape.data(), owner, tensor.strides.data(), type));
}

nb::dict give_value(const et::ValueMeta& value) {
  nb::dict out;
  out["tag"] = value.tag;
  if (!value.name.empty()) out["name"] = text(value.name);
  if (value.dtype) {
    out["dtype"] = std::string(dtype_name(*value.dtype));
    out["sizes"] = value.sizes;
    out["dim_order"] = value.dim_order;
    out["nbytes"] = value.nbytes;
  }
  return out;
}

const char* status_name(et::RunStatus status) {
  return status == et::RunStatus::ok ? "ok" : status == et::RunStatus::failed ? "failed" : "unfinished";
}

}  // namespace

void translate_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      try {
        std::rethrow_exception(thrown);
      } catch (const et::RuntimeError& failure) {
        set_python_error(failure, failure.name(), failure.number());
      } catch (const Error& failure) {
        set_python_error(failure, {}, 0);
      }
    } catch (nb::python_error& failure) {  // the package's errors cannot be had
      failure.restore();
    }
  });
}

et::InputValue take_input(nb::handle item, std::size_t i, std::vector<nb::object>& keep) {
  if (PyBool_Check(item.ptr())) return item.ptr() == Py_True;
  if (PyLong_Check(item.ptr())) {
    const auto value = PyLong_AsLongLong(item.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return static_cast<std::int64_t>(value);
  }
  if (PyFloat_Check(item.ptr())) return PyFloat_AsDouble(item.ptr());
  if (is_numpy_scalar(item)) {
    const nb::object plain = item.attr("item")();
    if (PyLong_Check(plain.ptr()) || PyFloat_Check(plain.ptr())) return take_input(plain, i, keep);
  }
  return take_tensor(item, i, keep);
}

nb::object give_output(et::OutputValue&& value) {
  if (auto* tensor = std::get_if<et::OutputTensor>(&value)) return give_tensor(std::move(*tensor));
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return nb::int_(*integer);
  if (const auto* real = std::get_if<double>(&value)) return nb::float_(*real);
  if (const auto* flag = std::get_if<bool>(&value)) return nb::bool_(*flag);
  if (const auto* string = std::get_if<std::string>(&value)) return text(*string);
  return nb::none();
}

nb::dict give_method(const et::MethodDescription& meta) {
  nb::dict out;
  out["name"] = text(meta.name);
  nb::list inputs, outputs;
  for (const auto& value : meta.inputs) inputs.append(give_value(value));
  for (const auto& value : meta.outputs) outputs.append(give_value(value));
  out["inputs"] = inputs;
  out["outputs"] = outputs;
  out["backends"] = texts(meta.backends);
  out["instructions"] = meta.instructions;
  return out;
}

nb::dict give_block(const et::EventColumns::Block& block, const std::string& name, std::uint64_t events) {
  nb::dict out;
  out["name"] = text(name);
  out["method"] = text(block.method);
  out["start_ticks"] = block.start;
  out["end_ticks"] = block.end;
  out["thread"] = block.thread;
  out["status"] = status_name(block.status);
  out["error"] = text(block.error);
  out["events"] = events;
  return out;
}

nb::dict give_anchor(const std::string& what, const et::ClockAnchor& anchor) {
  nb::dict out;
  out["what"] = what;
  out["ticks_before"] = anchor.ticks_before;
  out["ticks_after"] = anchor.ticks_after;
  out["monotonic_ns"] = anchor.monotonic_ns;
  out["unix_ns"] = anchor.unix_ns;
  out["tick_numerator"] = anchor.tick_numerator;
  out["tick_denominator"] = anchor.tick_denominator;
  return out;
}

nb::list give_engines(const std::vector<EngineInfo>& engines) {
  nb::list out;
  for (const auto& engine : engines) {
    nb::dict row;
    row["engine_id"] = engine.engine_id;
    row["name"] = text(engine.identity.name);
    row["method"] = text(engine.identity.method);
    row["delegate_index"] = engine.identity.delegate_index;
    row["instance"] = engine.instance;
    row["runtime"] = engine.identity.runtime;
    row["owner"] = engine.identity.owner;
    row["level"] = level_name(engine.level);
    row["level_source"] = level_source_name(engine.level_source);
    row["format"] = format_name(engine.format);
    row["path_prefix"] = text(engine.path_prefix);
    row["calls"] = engine.calls;
    row["failed_calls"] = engine.failed_calls;
    row["attachments"] = engine.attachments;
    row["contexts"] = engine.contexts;
    row["layers"] = texts(engine.layers);
    row["files"] = texts(engine.files);
    row["alive"] = engine.alive;
    row["last_error"] = text(engine.last_error);
    out.append(row);
  }
  return out;
}

nb::dict give_columns(RecordedColumns&& columns) {
  nb::dict out;
  out["engine"] = give(std::move(columns.engine));
  out["call"] = give(std::move(columns.call));
  out["kind"] = give(std::move(columns.kind));
  out["name"] = give(std::move(columns.name));
  out["start_ns"] = give(std::move(columns.start_ns));
  out["end_ns"] = give(std::move(columns.end_ns));
  out["thread"] = give(std::move(columns.thread));
  out["timing"] = give(std::move(columns.timing));
  out["on_device"] = give(std::move(columns.on_device));
  out["names"] = texts(columns.names);
  out["labels"] = texts(columns.labels);
  nb::list kinds, timings;
  for (const char* kind : {"delegate", "phase", "layer"}) kinds.append(kind);
  for (const auto timing : kTimingNames) timings.append(std::string(timing));
  out["kinds"] = kinds;
  out["timings"] = timings;
  out["engines"] = give_engines(columns.engines);
  out["dropped"] = columns.dropped;
  return out;
}

nb::dict give_blob(const EngineBlob& blob) {
  nb::dict out;
  out["magic"] = blob.format == 1 ? "TR01" : "TR02";
  out["kind"] = blob.kind == PayloadKind::host ? "host" : "tensorrt";
  out["engine_name"] = text(blob.engine_name);
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(blob.content_hash));
  out["content_hash"] = std::string(hash);
  out["payload_size"] = blob.payload.size();
  out["metadata"] = text(blob.metadata_json);
  out["stateful"] = blob.stateful;
  nb::list bindings, aliases, layers;
  for (const auto& binding : blob.bindings) {
    nb::dict row;
    row["name"] = text(binding.name);
    row["dtype"] = std::string(dtype_name(binding.dtype));
    row["shape"] = binding.shape;
    row["is_input"] = binding.is_input;
    bindings.append(row);
  }
  for (const auto& alias : blob.aliases)
    aliases.append(nb::make_tuple(alias.output, alias.input, text(alias.kind)));
  for (const auto& layer : blob.layers) layers.append(text(layer.id));
  out["bindings"] = bindings;
  out["aliases"] = aliases;
  out["layers"] = layers;
  return out;
}

}  // namespace torchtrt_viz::bindings
