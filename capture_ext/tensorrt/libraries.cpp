#include "tensorrt/libraries.hpp"

#include <NvInfer.h>
#include <NvInferVersion.h>
#include <dlfcn.h>

#include <cstdlib>

namespace torchtrt_viz {
namespace {

#define TORCHTRT_VIZ_TEXT_(x) #x
#define TORCHTRT_VIZ_TEXT(x) TORCHTRT_VIZ_TEXT_(x)

void* open_first(const std::vector<std::string>& names, std::string& tried) {
  for (const auto& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* reason = dlerror();
    tried += tried.empty() ? "" : "; ";
    tried += reason == nullptr ? name : reason;
  }
  return nullptr;
}

template <typename Function>
bool resolve(void* library, const char* name, Function& out, std::string& missing) {
  // POSIX gives functions as void*
  out = reinterpret_cast<Function>(dlsym(library, name));
  if (out != nullptr) return true;
  missing += missing.empty() ? "" : ", ";
  missing += name;
  return false;
}

}  // namespace

LibraryNames default_library_names() {
  const std::string major = std::to_string(NV_TENSORRT_MAJOR);
  LibraryNames names{{"libnvinfer.so." + major, "libnvinfer.so"},
                     {"libcudart.so." + std::to_string(CUDART_VERSION / 1000), "libcudart.so"}};
  if (const char* path = std::getenv(kNvinferVariable)) names.nvinfer = {path};
  if (const char* path = std::getenv(kCudartVariable)) names.cudart = {path};
  return names;
}

std::shared_ptr<const Libraries> Libraries::open(const LibraryNames& names) {
  std::shared_ptr<Libraries> made(new Libraries);
  std::string tried;
  made->cudart_ = open_first(names.cudart, tried);
  if (made->cudart_ == nullptr) {
    throw Error(Code::not_found, "the CUDA runtime library cannot be opened (" + tried +
                                     "): install the CUDA runtime, and name it in " +
                                     std::string(kCudartVariable) + " or put it on LD_LIBRARY_PATH");
  }
  tried.clear();
  made->nvinfer_ = open_first(names.nvinfer, tried);
  if (made->nvinfer_ == nullptr) {
    throw Error(Code::not_found, "TensorRT's library cannot be opened (" + tried +
                                     "): install TensorRT, and name it in " + std::string(kNvinferVariable) +
                                     " or put it on LD_LIBRARY_PATH");
  }
  std::string missing;
  CudaApi& cuda = made->cuda_;
  void* const cudart = made->cudart_;
  resolve(cudart, "cudaGetDevice", cuda.get_device, missing);
  resolve(cudart, "cudaSetDevice", cuda.set_device, missing);
  resolve(cudart, "cudaMalloc", cuda.malloc, missing);
  resolve(cudart, "cudaFree", cuda.free, missing);
  resolve(cudart, "cudaMemcpyAsync", cuda.memcpy_async, missing);
  resolve(cudart, "cudaStreamCreateWithFlags", cuda.stream_create, missing);
  resolve(cudart, "cudaStreamDestroy", cuda.stream_destroy, missing);
  resolve(cudart, "cudaStreamSynchronize", cuda.stream_synchronize, missing);
  resolve(cudart, "cudaStreamWaitEvent", cuda.stream_wait_event, missing);
  resolve(cudart, "cudaEventCreateWithFlags", cuda.event_create, missing);
  resolve(cudart, "cudaEventDestroy", cuda.event_destroy, missing);
  resolve(cudart, "cudaEventRecord", cuda.event_record, missing);
  resolve(cudart, "cudaEventSynchronize", cuda.event_synchronize, missing);
  resolve(cudart, "cudaEventElapsedTime", cuda.event_elapsed, missing);
  resolve(cudart, "cudaGetErrorString", cuda.error_string, missing);
  resolve(made->nvinfer_, "createInferRuntime_INTERNAL", made->create_runtime_, missing);
  if (!missing.empty()) {
    throw Error(Code::not_found, "the installed TensorRT or CUDA runtime lacks " + missing +
                                     ": this build needs TensorRT " TORCHTRT_VIZ_TEXT(NV_TENSORRT_MAJOR));
  }
  return made;
}

Libraries::~Libraries() {
  // TensorRT keeps threads and static state of its own: its library is never unmapped under them.
  if (cudart_ != nullptr) dlclose(cudart_);
}

void* Libraries::create_runtime(void* logger) const noexcept {
  return create_runtime_(logger, NV_TENSORRT_VERSION);
}

void Libraries::check(cudaError_t error, const char* what) const {
  if (error == cudaSuccess) return;
  const Code code = error == cudaErrorMemoryAllocation ? Code::out_of_memory : Code::internal;
  throw Error(code, std::string(what) + " failed: CUDA error " + std::to_string(error) + " (" +
                        cuda_.error_string(error) + ")");
}

}  // namespace torchtrt_viz
