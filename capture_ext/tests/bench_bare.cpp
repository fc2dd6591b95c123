#include "tests/bench_bare.hpp"

namespace torchtrt_viz::bench {

BareEngine::BareEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

void BareEngine::call(std::span<const TensorView> inputs, std::span<OutputView> outputs, void* stream) {
  const std::lock_guard lock(mutex_);
  run(calls_++, inputs, outputs, stream);
}

void BareEngine::run(std::uint64_t call, std::span<const TensorView> inputs, std::span<OutputView> outputs,
                     void* stream) {
  engine_->bind_inputs(inputs);
  engine_->infer_shapes();
  engine_->bind_outputs(outputs);
  engine_->enqueue(call, stream, Record::nothing);
  engine_->stage_outputs(outputs);
  engine_->synchronize();
}

}  // namespace torchtrt_viz::bench
