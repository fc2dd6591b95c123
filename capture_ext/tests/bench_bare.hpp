// What a build without the profiling feature does in a call. In a library of its own, as the real one is.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "core/engine.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz::bench {

class TORCHTRT_VIZ_API BareEngine {
 public:
  explicit BareEngine(std::unique_ptr<Engine> engine);
  void call(std::span<const TensorView> inputs, std::span<OutputView> outputs, void* stream);

 private:
  void run(std::uint64_t call, std::span<const TensorView> inputs, std::span<OutputView> outputs,
           void* stream);
  std::mutex mutex_;
  std::uint64_t calls_ = 0;
  std::unique_ptr<Engine> engine_;
};

}  // namespace torchtrt_viz::bench
