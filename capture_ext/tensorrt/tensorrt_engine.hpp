// A TensorRT plan as an Engine: binds, enqueues, and measures on the device without ever waiting for it.
//
// Asynchrony. With every tensor on the device and a stream of the caller's, a call returns with its work in
// flight; the next call (or the destructor) waits for it, because it reuses the bindings: that wait is part
// of the contract with profiling off. Otherwise the call waits for its own stream before it returns.
// Profiling adds no wait to either: device durations (from level phases on) come from CUDA events recorded
// around the enqueue, layer times (at level layers) from IProfiler with setEnqueueEmitsProfile(false), and
// both are read only after one of those waits. A caller on the default stream passes cudaStreamLegacy, and
// not null.
//
// TensorRT computes layer times through the stream of the last enqueue: a caller that lets layers be recorded
// keeps that stream alive until the next call or the engine's end.
#pragma once

#include <NvInfer.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine.hpp"
#include "tensorrt/device.hpp"
#include "tensorrt/layer_profiler.hpp"
#include "tensorrt/logger.hpp"

namespace torchtrt_viz {

// An output that is the same storage as an input (a KV cache updated in place).
struct Alias {
  std::size_t output = 0;
  std::size_t input = 0;
};

struct TensorRtSetup {
  std::span<const std::byte> plan;  // read during make() only
  std::int32_t device = 0;
  // The caller's order of the bindings, by name; empty: the plan's own, which need not be the same.
  std::vector<std::string> inputs, outputs;
  std::vector<Alias> aliases;
  LibraryNames libraries = default_library_names();
};

class TensorRtEngine final : public Engine {
 public:
  static std::unique_ptr<Engine> make(const TensorRtSetup& setup);
  ~TensorRtEngine() override;

  std::string_view runtime() const override { return "tensorrt"; }
  std::span<const BindingInfo> inputs() const override { return inputs_; }
  std::span<const BindingInfo> outputs() const override { return outputs_; }

  void bind_inputs(std::span<const TensorView> inputs) override;
  void infer_shapes() override;
  void bind_outputs(std::span<OutputView> outputs) override;
  void enqueue(std::uint64_t call, void* stream, Record record) override;
  void stage_outputs(std::span<OutputView> outputs) override;
  void synchronize() override;

  void want(Record most) override;
  void prepare() override;
  std::int64_t attachments() const override { return attachments_; }
  std::int64_t contexts() const override { return contexts_; }

  void finish() override;
  void collect(SpanReports& out) override;
  const LayerTable& layers() const override { return layers_; }
  std::string layer_information() const override;

 private:
  class Allocator;

  // The enqueue whose work may still run, and what was recorded about it.
  struct InFlight {
    bool pending = false;  // nobody has waited for it yet
    std::uint64_t call = 0;
    std::int64_t enqueued_ns = 0;  // host time of the enqueue
    bool timed = false;
    bool layers = false;
  };

  explicit TensorRtEngine(std::vector<Alias> aliases);
  void open(const TensorRtSetup& setup);
  void read_bindings(const TensorRtSetup& setup);
  void wait_for_previous();
  void choose_stream(cudaStream_t stream);
  void settle();  // the work in flight is known to be done: read what was measured
  const Alias* alias_of_output(std::size_t output) const;

  const std::vector<Alias> aliases_;
  std::shared_ptr<const Libraries> libraries_;
  // Destroyed from the last to the first: the context before the profiler and the engine that it uses.
  Logger logger_;
  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::ICudaEngine> engine_;
  LayerProfiler profiler_;
  std::vector<std::unique_ptr<Allocator>> allocators_;  // of outputs whose size the device finds out
  std::unique_ptr<nvinfer1::IExecutionContext> context_;

  Stream stream_;
  Event staged_, taken_, done_, begin_, end_;
  std::vector<BindingInfo> inputs_, outputs_;
  std::vector<DeviceBuffer> input_buffers_, output_buffers_;
  std::vector<TensorView> bound_inputs_;
  std::vector<void*> input_addresses_, output_addresses_;
  bool staged_inputs_ = false;
  bool copies_alone_ = false;  // inputs on their way, and no enqueue behind them
  bool must_wait_ = false;     // some tensor is on the host
  cudaStream_t running_on_ = nullptr;
  cudaStream_t handed_to_ = nullptr;  // the default stream, where the caller works on that one
  std::int32_t device_ = 0;

  InFlight in_flight_;
  Record wanted_ = Record::nothing;
  bool attached_ = false;
  std::int64_t attachments_ = 0;
  std::int64_t contexts_ = 0;
  LayerTable layers_;
  SpanReports ready_;
};

}  // namespace torchtrt_viz
