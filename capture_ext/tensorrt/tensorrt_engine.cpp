#include "tensorrt/tensorrt_engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/clock.hpp"
#include "tensorrt/dtype.hpp"

namespace torchtrt_viz {
namespace {

nvinfer1::Dims to_tensorrt(const Dims& dims) {
  nvinfer1::Dims out{};
  out.nbDims = static_cast<std::int32_t>(dims.rank());
  for (std::size_t i = 0; i < dims.rank(); ++i) out.d[i] = dims[i];
  return out;
}

Dims from_tensorrt(const nvinfer1::Dims& dims) {
  Dims out;
  for (std::int32_t i = 0; i < dims.nbDims; ++i) out.push_back(dims.d[i]);
  return out;
}

bool known(const nvinfer1::Dims& dims) {
  return dims.nbDims >= 0 && std::all_of(dims.d, dims.d + dims.nbDims, [](auto d) { return d >= 0; });
}

std::string quoted(const std::string& name) { return "'" + name + "'"; }

// Brings the plan's bindings into the order of the caller's arguments.
void order_bindings(const std::vector<std::string>& names, const char* what,
                    std::vector<BindingInfo>& bindings) {
  if (names.empty()) return;
  std::vector<BindingInfo> ordered;
  for (const auto& name : names) {
    const auto found =
        std::find_if(bindings.begin(), bindings.end(), [&](const BindingInfo& b) { return b.name == name; });
    if (found == bindings.end()) {
      throw Error(Code::invalid_program,
                  std::string("the program's ") + what + " " + quoted(name) + " is no binding of the plan");
    }
    ordered.push_back(*found);
  }
  if (ordered.size() != bindings.size()) {
    throw Error(Code::invalid_program, "the plan has " + std::to_string(bindings.size()) + " " + what +
                                           " bindings, the program names " + std::to_string(ordered.size()));
  }
  bindings = std::move(ordered);
}

}  // namespace

// Memory of an output whose size only the device finds out. TensorRT asks during the enqueue.
class TensorRtEngine::Allocator final : public nvinfer1::IOutputAllocator {
 public:
  Allocator(const TensorRtEngine& engine, DeviceBuffer& buffer) : engine_(engine), buffer_(buffer) {}

  void* reallocateOutputAsync(char const*, void*, std::uint64_t size, std::uint64_t, cudaStream_t) override {
    try {
      buffer_.reserve(engine_.libraries_, static_cast<std::size_t>(size));
      return buffer_.get();
    } catch (...) {
      return nullptr;  // nothing is thrown through TensorRT: the enqueue fails
    }
  }
  void notifyShape(char const*, nvinfer1::Dims const& dims) noexcept override {
    sizes_ = from_tensorrt(dims);
  }

  const Dims& sizes() const noexcept { return sizes_; }

 private:
  const TensorRtEngine& engine_;
  DeviceBuffer& buffer_;
  Dims sizes_;
};

TensorRtEngine::TensorRtEngine(std::vector<Alias> aliases) : aliases_(std::move(aliases)) {}

std::unique_ptr<Engine> TensorRtEngine::make(const TensorRtSetup& setup) {
  std::unique_ptr<TensorRtEngine> made(new TensorRtEngine(setup.aliases));
  made->open(setup);
  return made;
}

void TensorRtEngine::open(const TensorRtSetup& setup) {
  device_ = setup.device;
  libraries_ = Libraries::open(setup.libraries);
  const DeviceGuard guard(libraries_->cuda(), device_);
  runtime_.reset(static_cast<nvinfer1::IRuntime*>(libraries_->create_runtime(&logger_)));
  if (!runtime_) throw Error(Code::internal, "TensorRT made no runtime" + logger_.explain());
  engine_.reset(runtime_->deserializeCudaEngine(setup.plan.data(), setup.plan.size()));
  if (!engine_) {
    throw Error(Code::invalid_program,
                "TensorRT refused the plan" + logger_.explain() +
                    ": a plan runs with the TensorRT version and GPU type that it was built for");
  }
  read_bindings(setup);
  for (const auto& alias : aliases_) {
    if (alias.output >= outputs_.size() || alias.input >= inputs_.size()) {
      throw Error(Code::invalid_program, "an aliased binding names an input or output that is not there");
    }
  }
  stream_ = make_stream(libraries_);
  staged_ = make_event(libraries_, false);
  taken_ = make_event(libraries_, false);
  done_ = make_event(libraries_, false);
}

void TensorRtEngine::read_bindings(const TensorRtSetup& setup) {
  for (std::int32_t i = 0; i < engine_->getNbIOTensors(); ++i) {
    const char* name = engine_->getIOTensorName(i);
    const auto dtype = from_tensorrt(engine_->getTensorDataType(name));
    if (!dtype) {
      throw Error(Code::not_supported, "binding " + quoted(name) + " has a type without whole bytes");
    }
    BindingInfo info{name, *dtype, from_tensorrt(engine_->getTensorShape(name))};
    (engine_->getTensorIOMode(name) == nvinfer1::TensorIOMode::kINPUT ? inputs_ : outputs_)
        .push_back(std::move(info));
  }
  order_bindings(setup.inputs, "input", inputs_);
  order_bindings(setup.outputs, "output", outputs_);
  input_buffers_.resize(inputs_.size());
  output_buffers_.resize(outputs_.size());
  input_addresses_.resize(inputs_.size());
  output_addresses_.resize(outputs_.size());
  allocators_.resize(outputs_.size());
}

TensorRtEngine::~TensorRtEngine() {
  // Nothing that the device still uses may go away under it. The wait that the next call would have made.
  finish();
}

void TensorRtEngine::prepare() {
  const DeviceGuard guard(libraries_->cuda(), device_);
  context_.reset(engine_->createExecutionContext());
  if (!context_) {
    throw Error(Code::out_of_memory, "TensorRT made no execution context" + logger_.explain());
  }
  ++contexts_;
  attached_ = false;
  want(wanted_);
}

void TensorRtEngine::want(Record most) {
  wanted_ = most;
  const DeviceGuard guard(libraries_->cuda(), device_);
  if (most >= Record::device_time) {
    // Made here and not in a call, which they would make longer.
    if (!begin_) begin_ = make_event(libraries_, true);
    if (!end_) end_ = make_event(libraries_, true);
  }
  const bool layers = most == Record::layers;
  if (!context_ || layers == attached_) return;
  if (!layers) {
    // An attached profiler costs device time even when nobody reads it. Its last report is still to come.
    wait_for_previous();
    context_->setProfiler(nullptr);
    attached_ = false;
    return;
  }
  context_->setProfiler(&profiler_);
  // With a profiler attached, an enqueue would wait for the device to report. It must not.
  context_->setEnqueueEmitsProfile(false);
  attached_ = true;
  ++attachments_;
}

const Alias* TensorRtEngine::alias_of_output(std::size_t output) const {
  const auto found =
      std::find_if(aliases_.begin(), aliases_.end(), [&](const Alias& a) { return a.output == output; });
  return found == aliases_.end() ? nullptr : &*found;
}

void TensorRtEngine::wait_for_previous() {
  if (std::exchange(copies_alone_, false)) {
    // The call that staged them failed before its enqueue: nothing else says when they are done.
    libraries_->check(libraries_->cuda().stream_synchronize(stream_.get()), "waiting for staged inputs");
  }
  if (!in_flight_.pending) return;
  in_flight_.pending = false;
  libraries_->check(libraries_->cuda().event_synchronize(done_.get()),
                    "waiting for the previous call of the engine");
  settle();
}

void TensorRtEngine::settle() {
  if (!in_flight_.timed) return;
  in_flight_.timed = false;
  static const NameId kDeviceTime = intern_name(kDeviceTimeName);
  SpanRecord span;
  span.call = in_flight_.call;
  span.timing = Timing::device;
  span.on_device = true;
  float ms = 0;
  if (libraries_->cuda().event_elapsed(&ms, begin_.get(), end_.get()) == cudaSuccess) {
    span.start_ns = in_flight_.enqueued_ns;
    span.end_ns = span.start_ns + std::llround(static_cast<double>(ms) * 1e6);
    span.name = kDeviceTime;
    span.kind = SpanKind::phase;
    ready_.push_back(span);
  }
  if (!in_flight_.layers || !context_->reportToProfiler()) return;
  bool lost = false;
  std::int64_t at = in_flight_.enqueued_ns;
  for (const auto& time : profiler_.take(lost)) {
    const std::string id =
        time.occurrence == 0 ? time.name : time.name + "#" + std::to_string(time.occurrence);
    span.layer = layers_.row(id, time.name, "");
    span.name = layers_[span.layer].name_id;
    span.kind = SpanKind::layer;
    span.start_ns = at;
    span.end_ns = at += time.dur_ns;
    ready_.push_back(span);
  }
}

void TensorRtEngine::bind_inputs(std::span<const TensorView> inputs) {
  if (inputs.size() != inputs_.size()) {
    throw Error(Code::invalid_argument, "the engine takes " + std::to_string(inputs_.size()) +
                                            " inputs, got " + std::to_string(inputs.size()));
  }
  const CudaApi& cuda = libraries_->cuda();
  const DeviceGuard guard(cuda, device_);
  wait_for_previous();
  bound_inputs_.assign(inputs.begin(), inputs.end());
  staged_inputs_ = false;
  must_wait_ = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorView& input = inputs[i];
    const BindingInfo& info = inputs_[i];
    if (input.dtype != info.dtype) {
      throw Error(Code::invalid_type, "input " + quoted(info.name) + " is " +
                                          std::string(dtype_name(input.dtype)) + ", the engine takes " +
                                          std::string(dtype_name(info.dtype)));
    }
    if (input.sizes.rank() > static_cast<std::size_t>(nvinfer1::Dims::MAX_DIMS) ||
        !context_->setInputShape(info.name.c_str(), to_tensorrt(input.sizes))) {
      throw Error(Code::invalid_argument, "input " + quoted(info.name) + " cannot have the shape " +
                                              to_text(input.sizes) + logger_.explain());
    }
    void* address = input.data;
    if (input.device == DeviceKind::host || input.nbytes() == 0) {
      input_buffers_[i].reserve(libraries_, input.nbytes());
      address = input_buffers_[i].get();
      must_wait_ |= input.device == DeviceKind::host;
      if (input.nbytes() != 0) {
        staged_inputs_ = copies_alone_ = true;
        libraries_->check(
            cuda.memcpy_async(address, input.data, input.nbytes(), cudaMemcpyHostToDevice, stream_.get()),
            "copying an input to the device");
      }
    }
    input_addresses_[i] = address;
    if (!context_->setTensorAddress(info.name.c_str(), address)) {
      throw Error(Code::internal,
                  "TensorRT refused the address of input " + quoted(info.name) + logger_.explain());
    }
  }
  if (staged_inputs_) {
    libraries_->check(cuda.event_record(staged_.get(), stream_.get()), "recording the copies");
  }
}

void TensorRtEngine::infer_shapes() {
  const char* missing = nullptr;
  const std::int32_t unknown = context_->inferShapes(1, &missing);
  if (unknown == 0) return;
  throw Error(Code::invalid_argument,
              "the shapes cannot be inferred" +
                  (missing == nullptr ? std::string() : ": " + quoted(missing) + " is not set") +
                  logger_.explain());
}

void TensorRtEngine::bind_outputs(std::span<OutputView> outputs) {
  if (outputs.size() != outputs_.size()) {
    throw Error(Code::invalid_argument, "the engine gives " + std::to_string(outputs_.size()) +
                                            " outputs, room was given for " + std::to_string(outputs.size()));
  }
  const DeviceGuard guard(libraries_->cuda(), device_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    OutputView& output = outputs[i];
    const char* name = outputs_[i].name.c_str();
    const nvinfer1::Dims dims = context_->getTensorShape(name);
    void* address = nullptr;
    if (!known(dims)) {
      if (!allocators_[i]) {
        allocators_[i] = std::make_unique<Allocator>(*this, output_buffers_[i]);
        if (!context_->setOutputAllocator(name, allocators_[i].get())) {
          throw Error(Code::internal,
                      "TensorRT refused to allocate output " + quoted(name) + logger_.explain());
        }
      }
      must_wait_ = true;  // the size is known only when the device has found it out
      output_addresses_[i] = nullptr;
      continue;
    }
    if (output.resize != nullptr) {
      output.resize(output, from_tensorrt(dims));
    } else {
      output.sizes = from_tensorrt(dims);
    }
    output.dtype = outputs_[i].dtype;
    if (const Alias* alias = alias_of_output(i)) {
      address = input_addresses_[alias->input];
    } else if (output.device == DeviceKind::cuda && output.data != nullptr && output.nbytes() != 0) {
      address = output.data;
    } else {
      output_buffers_[i].reserve(libraries_, output.nbytes());
      address = output_buffers_[i].get();
    }
    must_wait_ |= output.device == DeviceKind::host;
    output_addresses_[i] = address;
    if (!context_->setTensorAddress(name, address)) {
      throw Error(Code::internal,
                  "TensorRT refused the address of output " + quoted(name) + logger_.explain());
    }
  }
}

// TensorRT waits for the device where it is given the default stream: work for that one runs on the engine's
// own stream, which waits for it before and is waited for after, by the device and not by the host.
void TensorRtEngine::choose_stream(cudaStream_t stream) {
  const CudaApi& cuda = libraries_->cuda();
  handed_to_ = stream == cudaStreamLegacy ? stream : nullptr;
  if (handed_to_ != nullptr) {
    running_on_ = stream_.get();
    libraries_->check(cuda.event_record(taken_.get(), handed_to_), "taking the inputs over");
    libraries_->check(cuda.stream_wait_event(running_on_, taken_.get(), 0), "taking the inputs over");
    return;
  }
  running_on_ = stream == nullptr ? stream_.get() : stream;
  if (!staged_inputs_ || running_on_ == stream_.get()) return;
  libraries_->check(cuda.stream_wait_event(running_on_, staged_.get(), 0), "ordering the copies");
}

void TensorRtEngine::enqueue(std::uint64_t call, void* stream, Record record) {
  const CudaApi& cuda = libraries_->cuda();
  const DeviceGuard guard(cuda, device_);
  must_wait_ |= stream == nullptr;
  choose_stream(static_cast<cudaStream_t>(stream));
  in_flight_ = {};
  in_flight_.call = call;
  in_flight_.enqueued_ns = record != Record::nothing ? monotonic_ns() : 0;
  const bool timed = record != Record::nothing && begin_ && end_ &&
                     cuda.event_record(begin_.get(), running_on_) == cudaSuccess;
  if (!context_->enqueueV3(running_on_)) {
    throw Error(Code::internal, "TensorRT could not enqueue the engine" + logger_.explain());
  }
  in_flight_.timed = timed && cuda.event_record(end_.get(), running_on_) == cudaSuccess;
  in_flight_.layers = in_flight_.timed && attached_ && record == Record::layers;
  libraries_->check(cuda.event_record(done_.get(), running_on_), "recording the end of the call");
  in_flight_.pending = true;
  copies_alone_ = false;
}

void TensorRtEngine::stage_outputs(std::span<OutputView> outputs) {
  const CudaApi& cuda = libraries_->cuda();
  const DeviceGuard guard(cuda, device_);
  bool copied = false;
  const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    copied = true;
    libraries_->check(cuda.memcpy_async(to, from, bytes, kind, running_on_), "copying an output");
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    OutputView& output = outputs[i];
    const void* from = output_addresses_[i];
    if (from == nullptr) {
      // TensorRT has told the size during the enqueue; the memory is the allocator's.
      const Dims sizes = allocators_[i]->sizes();
      output.dtype = outputs_[i].dtype;
      if (output.resize != nullptr) {
        output.resize(output, sizes);
      } else {
        output.sizes = sizes;
      }
      from = output_buffers_[i].get();
    }
    if (output.nbytes() == 0) continue;
    if (output.data != from) {
      const auto kind = output.device == DeviceKind::host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
      copy(output.data, from, output.nbytes(), kind);
    }
    // An aliased input that was staged is the caller's storage all the same: its new content goes back.
    if (const Alias* alias = alias_of_output(i)) {
      const TensorView& input = bound_inputs_[alias->input];
      if (input.device == DeviceKind::host && input.data != output.data && input.nbytes() != 0) {
        copy(input.data, input_addresses_[alias->input], input.nbytes(), cudaMemcpyDeviceToHost);
      }
    }
  }
  if (copied && in_flight_.pending) {
    libraries_->check(cuda.event_record(done_.get(), running_on_), "recording the end of the copies");
  }
  if (handed_to_ == nullptr) return;
  libraries_->check(cuda.stream_wait_event(handed_to_, done_.get(), 0), "handing the outputs over");
}

void TensorRtEngine::synchronize() {
  if (!must_wait_ || !in_flight_.pending) return;
  in_flight_.pending = false;
  libraries_->check(libraries_->cuda().stream_synchronize(running_on_), "waiting for the outputs");
  settle();
}

void TensorRtEngine::finish() {
  // A failing wait has nobody left to tell; what it would have settled is lost.
  regardless([this] { wait_for_previous(); });
}

void TensorRtEngine::collect(SpanReports& out) {
  out.insert(out.end(), ready_.begin(), ready_.end());
  ready_.clear();
}

std::string TensorRtEngine::layer_information() const {
  const std::unique_ptr<nvinfer1::IEngineInspector> inspector(engine_->createEngineInspector());
  if (!inspector) return "{}";
  if (context_) inspector->setExecutionContext(context_.get());
  const char* text = inspector->getEngineInformation(nvinfer1::LayerInformationFormat::kJSON);
  return text == nullptr ? "{}" : text;
}

}  // namespace torchtrt_viz
