// What an engine is: something that binds tensors, infers shapes, runs, and reports layers.
//
// An Engine knows nothing of profiling levels, files, ExecuTorch or torch. InstrumentedEngine
// (core/instrumented_engine.hpp) owns it, serialises its calls under one mutex and times the phases; the
// delegate (executorch/) and the torch operator (torch_ops/) adapt their runtime's tensors to it. Kinds:
// host_engine/ and tensorrt/, chosen by the payload's magic (core/blob.hpp).
//
// The order within a call, all of it under the mutex:
//
//   bind_inputs  infer_shapes  bind_outputs  enqueue  stage_outputs  synchronize  collect
//
// A step that throws ends the call; the next call starts with bind_inputs again. Before the first call, and
// each time that the profiling level changes: want; once, after the first want: prepare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/layers.hpp"
#include "core/options.hpp"
#include "core/span.hpp"
#include "core/tensor.hpp"

namespace torchtrt_viz {

struct BindingInfo {
  std::string name;
  DType dtype = DType::float32;
  Dims sizes;  // upper bounds of dynamic dimensions
};

// What an enqueue records beside running. Each includes the one before it.
enum class Record : std::uint8_t {
  nothing,
  device_time,  // how long the device worked, for engines that have one: kDeviceTimeName
  layers,
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Waits for work in flight before it releases anything that the work uses.
  virtual ~Engine() = default;

  virtual std::string_view runtime() const = 0;  // "host" or "tensorrt": named in every artifact
  virtual std::span<const BindingInfo> inputs() const = 0;
  virtual std::span<const BindingInfo> outputs() const = 0;

  // Validates inputs and sets their addresses and shapes. Waits first for an earlier call that still uses
  // the bindings, where the runtime's own contract makes it wait.
  virtual void bind_inputs(std::span<const TensorView> inputs) = 0;
  virtual void infer_shapes() = 0;
  // Calls OutputView::resize where it knows the sizes by now.
  virtual void bind_outputs(std::span<OutputView> outputs) = 0;
  // `stream` is the caller's CUDA stream (cudaStreamLegacy for the default one) or null: he has none, and the
  // call waits for its outputs. The host engine has none. `record`: what somebody will read
  // of this call; below layers, the gate of an attached profiler is closed.
  virtual void enqueue(std::uint64_t call, void* stream, Record record) = 0;
  // Copies to where the caller wants outputs, and sizes that are known only now.
  virtual void stage_outputs(std::span<OutputView> outputs) = 0;
  // Only what the call's contract needs with profiling off: profiling never adds a wait.
  virtual void synchronize() = 0;

  // The most that calls may be asked to record from now on. A profiler is attached at most once per execution
  // context, and only for layers. May make a new context where the runtime cannot attach to a living one.
  virtual void want(Record most) = 0;
  // Makes the execution context, so that what is wrong with the payload shows at load.
  virtual void prepare() = 0;
  virtual std::int64_t attachments() const = 0;  // profilers attached so far
  virtual std::int64_t contexts() const = 0;     // execution contexts made so far

  // Before the engine goes: waits for work in flight, so that collect() gives what there still is to report.
  virtual void finish() {}
  // The most detailed level that means anything for this engine.
  virtual Level deepest() const { return Level::layers; }

  // Moves reports that are complete to the end of `out`, without waiting for any that are not.
  virtual void collect(SpanReports& out) = 0;
  virtual const LayerTable& layers() const = 0;
  // JSON of TREX's graph.json shape: {"Layers": [...], "Bindings": [...]}.
  virtual std::string layer_information() const = 0;
};

}  // namespace torchtrt_viz
