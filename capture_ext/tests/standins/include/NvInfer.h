// Stand-in for TensorRT's runtime interface, for tests on machines without it: the calls that the engine
// makes, under TensorRT's names, implemented by standins/nvinfer.cpp on the simulated device. Written for
// these tests; not TensorRT.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "NvInferVersion.h"

namespace nvinfer1 {

using AsciiChar = char;

enum class DataType : std::int32_t {
  kFLOAT = 0,
  kHALF = 1,
  kINT8 = 2,
  kINT32 = 3,
  kBOOL = 4,
  kUINT8 = 5,
  kFP8 = 6,
  kBF16 = 7,
  kINT64 = 8,
  kINT4 = 9
};
enum class TensorIOMode : std::int32_t { kNONE = 0, kINPUT = 1, kOUTPUT = 2 };
enum class LayerInformationFormat : std::int32_t { kONELINE = 0, kJSON = 1 };

struct Dims {
  static constexpr std::int32_t MAX_DIMS = 8;
  std::int32_t nbDims;
  std::int64_t d[MAX_DIMS];
};

class ILogger {
 public:
  enum class Severity : std::int32_t {
    kINTERNAL_ERROR = 0,
    kERROR = 1,
    kWARNING = 2,
    kINFO = 3,
    kVERBOSE = 4
  };
  virtual ~ILogger() = default;
  virtual void log(Severity severity, AsciiChar const* text) noexcept = 0;
};

class IProfiler {
 public:
  virtual ~IProfiler() = default;
  virtual void reportLayerTime(char const* layerName, float ms) noexcept = 0;
};

class IOutputAllocator {
 public:
  virtual ~IOutputAllocator() = default;
  virtual void* reallocateOutputAsync(char const* name, void* current, std::uint64_t size,
                                      std::uint64_t alignment, cudaStream_t stream) = 0;
  virtual void notifyShape(char const* name, Dims const& dims) noexcept = 0;
};

class IExecutionContext {
 public:
  virtual ~IExecutionContext() = default;
  virtual void setProfiler(IProfiler* profiler) noexcept = 0;
  virtual void setEnqueueEmitsProfile(bool emits) noexcept = 0;
  virtual bool reportToProfiler() const noexcept = 0;
  virtual bool setInputShape(char const* name, Dims const& dims) noexcept = 0;
  virtual bool setTensorAddress(char const* name, void* data) noexcept = 0;
  virtual bool setOutputAllocator(char const* name, IOutputAllocator* allocator) noexcept = 0;
  virtual Dims getTensorShape(char const* name) const noexcept = 0;
  virtual std::int32_t inferShapes(std::int32_t capacity, char const** names) noexcept = 0;
  virtual bool enqueueV3(cudaStream_t stream) noexcept = 0;
};

class IEngineInspector {
 public:
  virtual ~IEngineInspector() = default;
  virtual bool setExecutionContext(IExecutionContext const* context) noexcept = 0;
  virtual char const* getEngineInformation(LayerInformationFormat format) const noexcept = 0;
};

class ICudaEngine {
 public:
  virtual ~ICudaEngine() = default;
  virtual std::int32_t getNbIOTensors() const noexcept = 0;
  virtual char const* getIOTensorName(std::int32_t index) const noexcept = 0;
  virtual DataType getTensorDataType(char const* name) const noexcept = 0;
  virtual TensorIOMode getTensorIOMode(char const* name) const noexcept = 0;
  virtual Dims getTensorShape(char const* name) const noexcept = 0;
  virtual IExecutionContext* createExecutionContext() noexcept = 0;
  virtual IEngineInspector* createEngineInspector() const noexcept = 0;
};

class IRuntime {
 public:
  virtual ~IRuntime() = default;
  virtual ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept = 0;
};

}  // namespace nvinfer1
