// TensorRT's interface over the simulated device. A plan is text:
//
//   ftrt
//   input x float32 -1x4
//   output y float32 -1x4
//   layer conv 600000        (name, device ns)
//
// Every output is 2 * (first input) + 1, element by element, as far as both reach. An output whose shape is
// "?" is allocated through the allocator, with half the elements of the first input.
#include <NvInfer.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "standins/device.hpp"

namespace {

using namespace nvinfer1;

struct Binding {
  std::string name;
  DataType dtype = DataType::kFLOAT;
  Dims dims{};
  bool input = false;
  bool data_dependent = false;
};

struct Layer {
  std::string name;
  std::int64_t dur_ns = 0;
};

struct Plan {
  std::vector<Binding> bindings;
  std::vector<Layer> layers;
  const Binding* find(const std::string& name) const {
    const auto it =
        std::find_if(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.name == name; });
    return it == bindings.end() ? nullptr : &*it;
  }
};

std::int64_t elements(const Dims& dims) {
  std::int64_t n = 1;
  for (std::int32_t i = 0; i < dims.nbDims; ++i) n *= dims.d[i];
  return n;
}

class Context final : public IExecutionContext {
 public:
  explicit Context(const Plan& plan) : plan_(plan) {
    for (const auto& b : plan_.bindings) shapes_[b.name] = b.dims;
  }

  void setProfiler(IProfiler* profiler) noexcept override { profiler_ = profiler; }
  // STANDINS_EMIT in the environment: a TensorRT that does not listen, for tests of the checks themselves.
  void setEnqueueEmitsProfile(bool emits) noexcept override {
    emits_ = emits || std::getenv("STANDINS_EMIT") != nullptr;
  }

  bool reportToProfiler() const noexcept override {
    if (profiler_ == nullptr || last_end_ < 0 || standins::standins_host_now() < last_end_) return false;
    for (const auto& layer : plan_.layers) {
      profiler_->reportLayerTime(layer.name.c_str(),
                                 static_cast<float>(static_cast<double>(layer.dur_ns) / 1e6));
    }
    return true;
  }

  bool setInputShape(char const* name, Dims const& dims) noexcept override {
    const Binding* b = plan_.find(name);
    if (b == nullptr || !b->input || b->dims.nbDims != dims.nbDims) return false;
    for (std::int32_t i = 0; i < dims.nbDims; ++i) {
      if (b->dims.d[i] >= 0 && b->dims.d[i] != dims.d[i]) return false;
    }
    shapes_[name] = dims;
    return true;
  }
  bool setTensorAddress(char const* name, void* data) noexcept override {
    if (data == nullptr || plan_.find(name) == nullptr) return false;
    addresses_[name] = data;
    return true;
  }
  bool setOutputAllocator(char const* name, IOutputAllocator* allocator) noexcept override {
    allocators_[name] = allocator;
    return true;
  }
  Dims getTensorShape(char const* name) const noexcept override {
    const Binding* b = plan_.find(name);
    if (b == nullptr || b->data_dependent) return Dims{1, {-1}};
    return shapes_.at(name);
  }

  std::int32_t inferShapes(std::int32_t capacity, char const** names) noexcept override {
    const Binding* first = nullptr;
    std::int32_t missing = 0;
    for (const auto& b : plan_.bindings) {
      if (b.input && first == nullptr) first = &b;
      if (b.input && addresses_.count(b.name) == 0) {
        if (missing < capacity) names[missing] = b.name.c_str();
        ++missing;
      }
    }
    if (missing != 0) return missing;
    // a dynamic output dimension is the first input's
    for (const auto& b : plan_.bindings) {
      if (b.input || b.data_dependent) continue;
      Dims dims = b.dims;
      for (std::int32_t i = 0; i < dims.nbDims; ++i) {
        if (dims.d[i] < 0) dims.d[i] = shapes_[first->name].d[i];
      }
      shapes_[b.name] = dims;
    }
    return 0;
  }

  bool enqueueV3(cudaStream_t stream) noexcept override {
    if (standins::standins_faults()->enqueue) return false;
    std::int64_t total = 0;
    for (const auto& layer : plan_.layers) total += layer.dur_ns;
    const Binding* first =
        &*std::find_if(plan_.bindings.begin(), plan_.bindings.end(), [](auto& b) { return b.input; });
    const auto* from = static_cast<const float*>(addresses_[first->name]);
    const auto available = elements(shapes_[first->name]);
    std::vector<std::pair<float*, std::int64_t>> targets;
    for (const auto& b : plan_.bindings) {
      if (b.input) continue;
      if (b.data_dependent) {
        const std::int64_t n = available / 2;
        void* memory = allocators_[b.name]->reallocateOutputAsync(
            b.name.c_str(), nullptr, static_cast<std::uint64_t>(n) * 4, 256, stream);
        if (memory == nullptr) return false;
        allocators_[b.name]->notifyShape(b.name.c_str(), Dims{1, {n}});
        targets.emplace_back(static_cast<float*>(memory), n);
      } else {
        targets.emplace_back(static_cast<float*>(addresses_[b.name]),
                             std::min(available, elements(shapes_[b.name])));
      }
    }
    const std::int64_t start = standins::enqueue(stream, total, [from, targets] {
      for (const auto& [to, n] : targets) {
        for (std::int64_t i = 0; i < n; ++i) to[i] = 2 * from[i] + 1;
      }
    });
    last_end_ = start + total;
    if (profiler_ != nullptr && emits_) {
      // as TensorRT does by default: an enqueue with a profiler waits for the device
      cudaStreamSynchronize(stream);
      (void)reportToProfiler();
    }
    return true;
  }

 private:
  const Plan& plan_;
  std::map<std::string, Dims> shapes_;
  std::map<std::string, void*> addresses_;
  std::map<std::string, IOutputAllocator*> allocators_;
  IProfiler* profiler_ = nullptr;
  bool emits_ = true;
  std::int64_t last_end_ = -1;
};

class Inspector final : public IEngineInspector {
 public:
  explicit Inspector(const Plan& plan) {
    text_ = "{\"Layers\": [";
    for (std::size_t i = 0; i < plan.layers.size(); ++i)
      text_ += (i ? ", \"" : "\"") + plan.layers[i].name + "\"";
    text_ += "], \"Bindings\": []}";
  }
  bool setExecutionContext(IExecutionContext const*) noexcept override { return true; }
  char const* getEngineInformation(LayerInformationFormat) const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

class CudaEngine final : public ICudaEngine {
 public:
  explicit CudaEngine(Plan plan) : plan_(std::move(plan)) {}
  std::int32_t getNbIOTensors() const noexcept override {
    return static_cast<std::int32_t>(plan_.bindings.size());
  }
  char const* getIOTensorName(std::int32_t i) const noexcept override {
    return plan_.bindings[static_cast<std::size_t>(i)].name.c_str();
  }
  DataType getTensorDataType(char const* name) const noexcept override { return plan_.find(name)->dtype; }
  TensorIOMode getTensorIOMode(char const* name) const noexcept override {
    return plan_.find(name)->input ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT;
  }
  Dims getTensorShape(char const* name) const noexcept override { return plan_.find(name)->dims; }
  IExecutionContext* createExecutionContext() noexcept override {
    if (standins::standins_faults()->create_context) return nullptr;
    return std::make_unique<Context>(plan_).release();
  }
  IEngineInspector* createEngineInspector() const noexcept override {
    return std::make_unique<Inspector>(plan_).release();
  }

 private:
  const Plan plan_;
};

class Runtime final : public IRuntime {
 public:
  explicit Runtime(ILogger* logger) : logger_(logger) {}
  ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept override {
    std::istringstream text(std::string(static_cast<const char*>(blob), size));
    std::string word;
    Plan plan;
    if (!(text >> word) || word != "ftrt") {
      logger_->log(ILogger::Severity::kERROR, "magic tag does not match");
      return nullptr;
    }
    while (text >> word) {
      if (word == "layer") {
        Layer layer;
        text >> layer.name >> layer.dur_ns;
        plan.layers.push_back(layer);
        continue;
      }
      Binding b;
      std::string dtype, shape;
      text >> b.name >> dtype >> shape;
      b.input = word == "input";
      b.dtype = dtype == "int4" ? DataType::kINT4 : dtype == "int64" ? DataType::kINT64 : DataType::kFLOAT;
      b.data_dependent = shape == "?";
      b.dims.nbDims = 0;
      std::istringstream sizes(shape);
      for (std::string d; !b.data_dependent && std::getline(sizes, d, 'x');)
        b.dims.d[b.dims.nbDims++] = std::stoll(d);
      plan.bindings.push_back(b);
    }
    return std::make_unique<CudaEngine>(std::move(plan)).release();
  }

 private:
  ILogger* logger_;
};

}  // namespace

extern "C" void* createInferRuntime_INTERNAL(void* logger, std::int32_t version) noexcept {
  if (version / 10000 != NV_TENSORRT_MAJOR) return nullptr;
  return std::make_unique<Runtime>(static_cast<ILogger*>(logger)).release();
}
