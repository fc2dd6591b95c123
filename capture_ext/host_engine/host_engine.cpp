#include "host_engine/host_engine.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/json_text.hpp"
#include "host_engine/borrowed_tensor.hpp"
#include "host_engine/et_types.hpp"
#include "host_engine/inner_program.hpp"
#include "host_engine/layer_tracer.hpp"
#include "host_engine/runtime_log.hpp"

namespace torchtrt_viz {
namespace {

namespace rt = executorch::runtime;
using executorch::aten::TensorImpl;

enum class ValueKind : std::uint8_t { tensor, integer, real, boolean };

struct InnerValue {
  BindingInfo info;
  ValueKind kind = ValueKind::tensor;
  std::vector<std::uint8_t> dim_order;
  std::vector<bool> fixed;  // dimensions that the exporter says are static; empty where it says nothing
  bool planned = false;     // lives in the inner program's own memory: has to be copied
  bool by_pointer = false;  // an output that the program writes to memory that it is given
  std::unique_ptr<std::byte[]> scratch;  // for such an output where the caller's memory will not do
};

std::optional<ValueKind> kind_of(rt::Tag tag) {
  switch (tag) {
    case rt::Tag::Tensor:
      return ValueKind::tensor;
    case rt::Tag::Int:
      return ValueKind::integer;
    case rt::Tag::Double:
      return ValueKind::real;
    case rt::Tag::Bool:
      return ValueKind::boolean;
    default:
      return std::nullopt;
  }
}

DType scalar_dtype(ValueKind kind) {
  return kind == ValueKind::integer ? DType::int64
         : kind == ValueKind::real  ? DType::float64
                                    : DType::boolean;
}

bool same_order(const std::uint8_t* order, const std::vector<std::uint8_t>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if ((order == nullptr ? i : order[i]) != wanted[i]) return false;
  }
  return true;
}

class HostEngine final : public Engine {
 public:
  static std::unique_ptr<HostEngine> make(const EngineBlob& blob);

  std::string_view runtime() const override { return "host"; }
  std::span<const BindingInfo> inputs() const override { return input_infos_; }
  std::span<const BindingInfo> outputs() const override { return output_infos_; }
  void bind_inputs(std::span<const TensorView> inputs) override;
  void infer_shapes() override;
  void bind_outputs(std::span<OutputView> outputs) override;
  void enqueue(std::uint64_t call, void* stream, Record record) override;
  void stage_outputs(std::span<OutputView> outputs) override;
  // The inner program has finished when enqueue() returns: there is nothing to wait for.
  void synchronize() override {}
  void want(Record most) override;
  void prepare() override;
  std::int64_t attachments() const override { return attachments_; }
  std::int64_t contexts() const override { return contexts_; }
  void collect(SpanReports& out) override;
  const LayerTable& layers() const override { return layers_; }
  std::string layer_information() const override;

 private:
  void describe(const EngineBlob& blob);
  void describe_value(const char* what, std::size_t i, rt::Result<rt::Tag> tag,
                      rt::Result<rt::TensorInfo> info, InnerValue& out) const;
  void check_input(std::size_t i, const TensorView& view) const;
  void find_direct_outputs();
  void reflect_aliases(std::span<OutputView> outputs);
  std::string name_of(const char* what, std::size_t i, const InnerValue& value) const;

  std::unique_ptr<et::InnerProgram> program_;
  std::vector<InnerValue> inputs_, outputs_;
  std::vector<BindingInfo> input_infos_, output_infos_;
  std::vector<AliasSpec> aliases_;
  std::vector<TensorView> bound_inputs_;
  std::vector<bool> direct_;  // outputs that this call writes in place
  LayerTable layers_;
  std::unique_ptr<et::LayerTracer> tracer_;
  SpanReports reports_;
  std::string engine_name_;
  bool stateful_ = false;
  bool wanted_ = false;
  bool ran_ = false;
  std::int64_t attachments_ = 0;
  std::int64_t contexts_ = 0;
};

std::unique_ptr<HostEngine> HostEngine::make(const EngineBlob& blob) {
  auto made = std::make_unique<HostEngine>();
  made->program_ = et::InnerProgram::load(blob.payload);
  made->engine_name_ = blob.engine_name;
  made->stateful_ = blob.stateful;
  made->aliases_ = blob.aliases;
  for (const auto& spec : blob.layers) {
    LayerInfo info;
    info.id = spec.id;
    info.name = spec.name;
    info.op = spec.op;
    info.module = spec.module;
    info.nodes = spec.nodes;
    info.whole = spec.whole;
    made->layers_.foretell(std::move(info));
  }
  made->describe(blob);
  return made;
}

std::string HostEngine::name_of(const char* what, std::size_t i, const InnerValue& value) const {
  std::string out = std::string(what) + " " + std::to_string(i);
  if (!value.info.name.empty()) out += " ('" + value.info.name + "')";
  return out + " of engine '" + engine_name_ + "'";
}

void HostEngine::describe_value(const char* what, std::size_t i, rt::Result<rt::Tag> tag,
                                rt::Result<rt::TensorInfo> info, InnerValue& out) const {
  const auto kind = tag.ok() ? kind_of(*tag) : std::nullopt;
  if (!kind) {
    throw Error(Code::not_supported, name_of(what, i, out) + " is neither a tensor nor a number");
  }
  out.kind = *kind;
  if (*kind != ValueKind::tensor) {
    out.info.dtype = scalar_dtype(*kind);
    return;
  }
  if (!info.ok()) throw Error(Code::invalid_program, name_of(what, i, out) + " has no tensor description");
  const auto dtype = et::dtype_of(info->scalar_type());
  if (!dtype || info->sizes().size() > kMaxDims) {
    throw Error(Code::not_supported, name_of(what, i, out) + " has a type or rank that is not supported");
  }
  out.info.dtype = *dtype;
  out.info.sizes = Dims(info->sizes());
  out.dim_order.assign(info->dim_order().begin(), info->dim_order().end());
  out.planned = info->is_memory_planned();
}

void HostEngine::describe(const EngineBlob& blob) {
  const auto meta = program_->meta();
  inputs_.resize(meta.num_inputs());
  outputs_.resize(meta.num_outputs());
  std::vector<const BindingSpec*> in, out;
  for (const auto& spec : blob.bindings) (spec.is_input ? in : out).push_back(&spec);
  if (!blob.bindings.empty() && (in.size() != inputs_.size() || out.size() != outputs_.size())) {
    throw Error(Code::invalid_program,
                "io_bindings of engine '" + engine_name_ + "' lists " + std::to_string(in.size()) +
                    " inputs and " + std::to_string(out.size()) + " outputs, its program has " +
                    std::to_string(inputs_.size()) + " and " + std::to_string(outputs_.size()));
  }
  const auto name = [](std::vector<InnerValue>& values, const std::vector<const BindingSpec*>& specs) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      values[i].info.name = specs[i]->name;
      for (const auto size : specs[i]->shape) values[i].fixed.push_back(size >= 0);
    }
  };
  name(inputs_, in);
  name(outputs_, out);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    describe_value("input", i, meta.input_tag(i), meta.input_tensor_meta(i), inputs_[i]);
    input_infos_.push_back(inputs_[i].info);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    describe_value("output", i, meta.output_tag(i), meta.output_tensor_meta(i), outputs_[i]);
    output_infos_.push_back(outputs_[i].info);
  }
  const auto agree = [&](const char* what, const std::vector<InnerValue>& values,
                         const std::vector<const BindingSpec*>& specs) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto& value = values[i];
      if (value.kind != ValueKind::tensor) continue;
      if (specs[i]->dtype != value.info.dtype || specs[i]->shape.size() != value.info.sizes.rank()) {
        throw Error(Code::invalid_program, "io_bindings gives " + name_of(what, i, value) + " as " +
                                               std::string(dtype_name(specs[i]->dtype)) + " of rank " +
                                               std::to_string(specs[i]->shape.size()) + ", its program has " +
                                               std::string(dtype_name(value.info.dtype)) + " of rank " +
                                               std::to_string(value.info.sizes.rank()));
      }
    }
  };
  agree("input", inputs_, in);
  agree("output", outputs_, out);
  for (const auto& alias : aliases_) {
    if (alias.output >= outputs_.size() || alias.input >= inputs_.size()) {
      throw Error(Code::invalid_program, "aliased_io of engine '" + engine_name_ + "' names output " +
                                             std::to_string(alias.output) + " and input " +
                                             std::to_string(alias.input) + ", which are not there");
    }
  }
  bound_inputs_.resize(inputs_.size());
  direct_.resize(outputs_.size());
}

void HostEngine::prepare() {
  if (program_->has_context()) return;
  if (wanted_ && !tracer_) tracer_ = std::make_unique<et::LayerTracer>(layers_);
  program_->make_context(tracer_.get());
  contexts_ += 1;
  attachments_ += tracer_ ? 1 : 0;
  find_direct_outputs();
}

// The runtime attaches a tracer only when it makes a method, so the first wish for layers after that makes a
// new one. Later wishes find it attached, and its gate is opened call by call.
void HostEngine::want(Record most) {
  wanted_ = most == Record::layers;
  if (!wanted_ || tracer_ || !program_->has_context()) return;
  if (stateful_ && ran_) {
    throw Error(Code::not_supported,
                "engine '" + engine_name_ +
                    "' keeps state between calls and was loaded without layer profiling: load the program "
                    "with torchtrt_profile_level=layers");
  }
  tracer_ = std::make_unique<et::LayerTracer>(layers_);
  try {
    program_->make_context(tracer_.get());
  } catch (const Error&) {
    tracer_.reset();
    regardless([this] {
      program_->make_context(nullptr);
      contexts_ += 1;
    });
    throw;
  }
  contexts_ += 1;
  attachments_ += 1;
  find_direct_outputs();
}

// An output can be written where the caller wants it unless it lives in planned memory, is a constant, is an
// input handed through, or is the same tensor as an output before it.
void HostEngine::find_direct_outputs() {
  auto& method = program_->method();
  std::vector<const TensorImpl*> taken;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind == ValueKind::tensor) {
      taken.push_back(method.get_input(i).toTensor().unsafeGetTensorImpl());
    }
  }
#pragma GCC diagnostic pop
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    auto& output = outputs_[i];
    output.by_pointer = false;
    if (output.kind != ValueKind::tensor || output.planned) continue;
    const auto& tensor = method.get_output(i).toTensor();
    const TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const bool shared = std::find(taken.begin(), taken.end(), impl) != taken.end();
    output.by_pointer = !shared && tensor.const_data_ptr() == nullptr;
    taken.push_back(impl);
  }
}

void HostEngine::check_input(std::size_t i, const TensorView& view) const {
  const auto& value = inputs_[i];
  if (view.device != DeviceKind::host) {
    throw Error(Code::not_supported, name_of("input", i, value) + " is not in host memory");
  }
  if (view.dtype != value.info.dtype) {
    throw Error(Code::invalid_type, name_of("input", i, value) + " is " +
                                        std::string(dtype_name(view.dtype)) + ", expected " +
                                        std::string(dtype_name(value.info.dtype)));
  }
  if (value.kind != ValueKind::tensor) return;
  const auto& bound = value.info.sizes;
  bool fits = view.sizes.rank() == bound.rank();
  for (std::size_t d = 0; fits && d < bound.rank(); ++d) {
    const bool fixed = value.fixed.size() == bound.rank() && value.fixed[d];
    fits = fixed ? view.sizes[d] == bound[d] : view.sizes[d] >= 0 && view.sizes[d] <= bound[d];
  }
  if (!fits) {
    throw Error(Code::invalid_argument, name_of("input", i, value) + " has shape " + to_text(view.sizes) +
                                            ", the engine takes at most " + to_text(bound));
  }
  if (!same_order(view.dim_order, value.dim_order)) {
    throw Error(
        Code::invalid_argument,
        name_of("input", i, value) + " is laid out in another order of dimensions than it was exported with");
  }
  if (view.data == nullptr && view.nbytes() != 0) {
    throw Error(Code::invalid_argument, name_of("input", i, value) + " has no memory");
  }
}

void HostEngine::bind_inputs(std::span<const TensorView> inputs) {
  if (inputs.size() != inputs_.size()) {
    throw Error(Code::invalid_argument, "engine '" + engine_name_ + "' takes " +
                                            std::to_string(inputs_.size()) + " inputs, got " +
                                            std::to_string(inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(i, inputs[i]);
    bound_inputs_[i] = inputs[i];
  }
}

// The inner runtime sizes a tensor when it is set, and infers the shapes inside from these as it runs.
void HostEngine::infer_shapes() {
  auto& method = program_->method();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto& view = bound_inputs_[i];
    rt::Error error = rt::Error::Ok;
    switch (inputs_[i].kind) {
      case ValueKind::tensor: {
        et::BorrowedTensor tensor(view, inputs_[i].dim_order);
        error = method.set_input(tensor.value(), i);
        break;
      }
      case ValueKind::integer:
        error = method.set_input(rt::EValue(*static_cast<const std::int64_t*>(view.data)), i);
        break;
      case ValueKind::real:
        error = method.set_input(rt::EValue(*static_cast<const double*>(view.data)), i);
        break;
      case ValueKind::boolean:
        error = method.set_input(rt::EValue(*static_cast<const bool*>(view.data)), i);
        break;
    }
    if (error != rt::Error::Ok) {
      throw Error(et::to_code(error), name_of("input", i, inputs_[i]) + " of shape " + to_text(view.sizes) +
                                          " was refused: " + std::string(et::error_name(error)));
    }
  }
}

void HostEngine::bind_outputs(std::span<OutputView> outputs) {
  if (outputs.size() != outputs_.size()) {
    throw Error(Code::invalid_argument, "engine '" + engine_name_ + "' gives " +
                                            std::to_string(outputs_.size()) + " outputs, asked for " +
                                            std::to_string(outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto& value = outputs_[i];
    auto& view = outputs[i];
    if (view.dtype != value.info.dtype) {
      throw Error(Code::invalid_type, name_of("output", i, value) + " is wanted as " +
                                          std::string(dtype_name(view.dtype)) + ", the engine gives " +
                                          std::string(dtype_name(value.info.dtype)));
    }
    direct_[i] = false;
    if (!value.by_pointer) continue;
    const auto most = static_cast<std::size_t>(value.info.sizes.elements()) * dtype_size(value.info.dtype);
    if (view.capacity < most && view.resize != nullptr) {
      // Room for the largest shape would do without a copy; there need not be any.
      regardless([&] { view.resize(view, value.info.sizes); });
    }
    direct_[i] = most != 0 && view.data != nullptr && view.capacity >= most &&
                 same_order(view.dim_order, value.dim_order);
    if (!direct_[i] && !value.scratch) {
      value.scratch.reset(new (std::nothrow) std::byte[std::max<std::size_t>(most, 1)]);
      if (!value.scratch) throw Error(Code::out_of_memory, "no memory for " + name_of("output", i, value));
    }
    void* memory = direct_[i] ? view.data : value.scratch.get();
    const auto error = program_->method().set_output_data_ptr(memory, std::max<std::size_t>(most, 1), i);
    if (error != rt::Error::Ok) {
      throw Error(et::to_code(error),
                  name_of("output", i, value) + " cannot be bound: " + std::string(et::error_name(error)));
    }
  }
}

void HostEngine::enqueue(std::uint64_t call, void*, Record record) {
  et::RuntimeLog log;
  if (tracer_ && record == Record::layers) tracer_->open(call, &reports_);
  const auto error = program_->method().execute();
  if (tracer_) tracer_->close();
  ran_ = true;
  if (error == rt::Error::Ok) return;
  std::string text =
      "engine '" + engine_name_ + "' failed: executorch says " + std::string(et::error_name(error));
  if (const auto reason = log.take(); !reason.empty()) text += ": " + reason;
  throw Error(et::to_code(error), text);
}

void HostEngine::stage_outputs(std::span<OutputView> outputs) {
  auto& method = program_->method();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto& view = outputs[i];
    const auto& value = method.get_output(i);
    switch (outputs_[i].kind) {
      case ValueKind::integer:
        *static_cast<std::int64_t*>(view.data) = value.toInt();
        continue;
      case ValueKind::real:
        *static_cast<double*>(view.data) = value.toDouble();
        continue;
      case ValueKind::boolean:
        *static_cast<bool*>(view.data) = value.toBool();
        continue;
      case ValueKind::tensor:
        break;
    }
    const auto& tensor = value.toTensor();
    const Dims sizes(tensor.sizes());
    if (view.resize != nullptr) {
      view.resize(view, sizes);
    }
    const auto bytes = static_cast<std::size_t>(tensor.nbytes());
    if (direct_[i] || bytes == 0) continue;
    if (view.data == nullptr || view.capacity < bytes) {
      throw Error(Code::invalid_argument, name_of("output", i, outputs_[i]) + " needs " +
                                              std::to_string(bytes) + " bytes, the caller's memory has " +
                                              std::to_string(view.capacity));
    }
    if (!same_order(view.dim_order, outputs_[i].dim_order)) {
      throw Error(Code::invalid_argument,
                  name_of("output", i, outputs_[i]) +
                      " is wanted in another order of dimensions than it was exported with");
    }
    std::memcpy(view.data, tensor.const_data_ptr(), bytes);
  }
  reflect_aliases(outputs);
}

// An aliased output is the input's new value: the caller's storage gets it, once nothing reads the old one.
void HostEngine::reflect_aliases(std::span<OutputView> outputs) {
  for (const auto& alias : aliases_) {
    const auto& from = outputs[alias.output];
    const auto& to = bound_inputs_[alias.input];
    if (from.data == to.data) continue;
    if (from.nbytes() != to.nbytes() || from.dtype != to.dtype) {
      throw Error(Code::invalid_argument, name_of("output", alias.output, outputs_[alias.output]) +
                                              " of shape " + to_text(from.sizes) + " cannot update " +
                                              name_of("input", alias.input, inputs_[alias.input]) +
                                              " of shape " + to_text(to.sizes));
    }
    std::memcpy(to.data, from.data, from.nbytes());
  }
}

void HostEngine::collect(SpanReports& out) {
  out.insert(out.end(), reports_.begin(), reports_.end());
  reports_.clear();
}

std::string HostEngine::layer_information() const {
  std::string out = "{\"Layers\":[";
  bool first = true;
  for (const auto& row : layers_.rows()) {
    out += first ? "\n" : ",\n";
    first = false;
    std::string metadata;
    JsonObject(metadata).text("id", row.id).text("module", row.module).texts("nodes", row.nodes).close();
    JsonObject(out)
        .text("Name", row.name)
        .text("LayerType", row.op.empty() ? row.kernel : row.op)
        .text("Kernel", row.kernel)
        .raw("Inputs", "[]")
        .raw("Outputs", "[]")
        .text("Metadata", metadata)
        .close();
  }
  out += "\n],\"Bindings\":[";
  first = true;
  for (const auto* infos : {&input_infos_, &output_infos_}) {
    for (const auto& info : *infos) {
      if (!first) out += ',';
      first = false;
      append_json_string(out, info.name);
    }
  }
  out += "],\"engine_runtime\":\"host\",\"engine_name\":";
  append_json_string(out, engine_name_);
  return out + "}\n";
}

}  // namespace

std::unique_ptr<Engine> make_host_engine(const EngineBlob& blob) { return HostEngine::make(blob); }

}  // namespace torchtrt_viz
