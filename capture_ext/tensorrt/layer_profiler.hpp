// TensorRT's IProfiler, without LibTorch: keeps what one execution reported until the engine takes it.
#pragma once

#include <NvInfer.h>

#include <cstdint>
#include <string>
#include <vector>

namespace torchtrt_viz {

struct LayerTime {
  std::string name;
  std::int32_t occurrence = 0;  // 0, 1, ... for layers of one name within one execution
  std::int64_t dur_ns = 0;
};

class LayerProfiler final : public nvinfer1::IProfiler {
 public:
  // Called by TensorRT once per layer and execution, in execution order. An exception may not leave it.
  void reportLayerTime(char const* layer_name, float ms) noexcept override;

  // What was reported since the last call, and whether something was lost for want of memory.
  std::vector<LayerTime> take(bool& lost);
  std::int64_t callbacks() const noexcept { return callbacks_; }

 private:
  std::vector<LayerTime> times_;
  std::int64_t callbacks_ = 0;
  bool lost_ = false;
};

}  // namespace torchtrt_viz
