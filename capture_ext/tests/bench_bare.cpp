#include "tests/bench_bare.hpp"

namespace torchtrt_viz::bench {

BareEngine::BareEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

Status BareEngine::call(std::span<const TensorView> inputs, std::span<OutputView> outputs, void* stream) {
  const std::lock_guard lock(mutex_);
  return run(calls_++, inputs, outputs, stream);
}

Status BareEngine::run(std::uint64_t call, std::span<const TensorView> inputs, std::span<OutputView> outputs,
                       void* stream) {
  auto status = engine_->bind_inputs(inputs);
  if (status.ok()) status = engine_->infer_shapes();
  if (status.ok()) status = engine_->bind_outputs(outputs);
  if (status.ok()) status = engine_->enqueue(call, stream, Record::nothing);
  if (status.ok()) status = engine_->stage_outputs(outputs);
  if (status.ok()) status = engine_->synchronize();
  return status;
}

}  // namespace torchtrt_viz::bench
