// TensorRT's and CUDA's runtime libraries, opened when the first plan is loaded: a process that runs host
// engines only never needs them, and a machine without them gets a message instead of a failed import.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace torchtrt_viz {

// The CUDA runtime functions that the engine calls.
struct CudaApi {
  decltype(&::cudaGetDevice) get_device = nullptr;
  decltype(&::cudaSetDevice) set_device = nullptr;
  decltype(&::cudaMalloc) malloc = nullptr;
  decltype(&::cudaFree) free = nullptr;
  decltype(&::cudaMemcpyAsync) memcpy_async = nullptr;
  decltype(&::cudaStreamCreateWithFlags) stream_create = nullptr;
  decltype(&::cudaStreamDestroy) stream_destroy = nullptr;
  decltype(&::cudaStreamSynchronize) stream_synchronize = nullptr;
  decltype(&::cudaStreamWaitEvent) stream_wait_event = nullptr;
  decltype(&::cudaEventCreateWithFlags) event_create = nullptr;
  decltype(&::cudaEventDestroy) event_destroy = nullptr;
  decltype(&::cudaEventRecord) event_record = nullptr;
  decltype(&::cudaEventSynchronize) event_synchronize = nullptr;
  decltype(&::cudaEventElapsedTime) event_elapsed = nullptr;
  decltype(&::cudaGetErrorString) error_string = nullptr;
};

// Paths of the libraries, where they are not found by name: the environment's.
inline constexpr char kNvinferVariable[] = "TORCHTRT_VIZ_NVINFER";
inline constexpr char kCudartVariable[] = "TORCHTRT_VIZ_CUDART";

// Where to look; by default those, else the names that the installed libraries have.
struct LibraryNames {
  std::vector<std::string> nvinfer;
  std::vector<std::string> cudart;
};
LibraryNames default_library_names();

class Libraries {
 public:
  // Opens both, or says which is missing and where it was looked for. The libraries stay open for the life
  // of the object, which every engine shares.
  static std::shared_ptr<const Libraries> open(const LibraryNames& names);

  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;
  ~Libraries();

  const CudaApi& cuda() const noexcept { return cuda_; }
  // TensorRT's C entry point; the version is checked by TensorRT itself.
  void* create_runtime(void* logger) const noexcept;
  // Throws a CUDA error, saying what was attempted.
  void check(cudaError_t error, const char* what) const;

 private:
  Libraries() = default;
  void* nvinfer_ = nullptr;
  void* cudart_ = nullptr;
  void* (*create_runtime_)(void*, std::int32_t) noexcept = nullptr;
  CudaApi cuda_;
};

}  // namespace torchtrt_viz
