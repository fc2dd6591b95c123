#include "tensorrt/layer_profiler.hpp"

#include <cmath>
#include <unordered_map>
#include <utility>

namespace torchtrt_viz {

void LayerProfiler::reportLayerTime(char const* layer_name, float ms) noexcept {
  ++callbacks_;
  try {
    // TensorRT reports float milliseconds: 24 bits of precision, so about 0.1 us at one second.
    const double ns = std::isfinite(ms) && ms > 0 ? static_cast<double>(ms) * 1e6 : 0.0;
    times_.push_back({layer_name == nullptr ? "" : layer_name, 0, std::llround(ns)});
  } catch (...) {
    lost_ = true;
  }
}

std::vector<LayerTime> LayerProfiler::take(bool& lost) {
  lost = std::exchange(lost_, false);
  std::vector<LayerTime> taken = std::exchange(times_, {});
  std::unordered_map<std::string_view, std::int32_t> seen;
  for (auto& time : taken) time.occurrence = seen[time.name]++;
  return taken;
}

}  // namespace torchtrt_viz
