#include "executorch/engine_factory.hpp"

#include "host_engine/host_engine.hpp"

#ifdef TORCHTRT_VIZ_HAS_TENSORRT
#include "tensorrt/libraries.hpp"
#include "tensorrt/tensorrt_engine.hpp"
#endif

namespace torchtrt_viz {

#ifdef TORCHTRT_VIZ_HAS_TENSORRT
bool has_tensorrt_engine() noexcept { return true; }

std::string tensorrt_problem() {
  try {
    const auto libraries = Libraries::open(default_library_names());
    int device = 0;
    libraries->check(libraries->cuda().get_device(&device), "asking for a GPU");
  } catch (const Error& failure) {
    return failure.what();
  }
  return {};
}

namespace {

std::unique_ptr<Engine> make_tensorrt_engine(const EngineBlob& blob) {
  TensorRtSetup setup;
  setup.plan = blob.payload;
  setup.device = blob.device;
  for (const auto& binding : blob.bindings) {
    (binding.is_input ? setup.inputs : setup.outputs).push_back(binding.name);
  }
  for (const auto& alias : blob.aliases) setup.aliases.push_back({alias.output, alias.input});
  return TensorRtEngine::make(setup);
}

}  // namespace
#else
bool has_tensorrt_engine() noexcept { return false; }

std::string tensorrt_problem() { return "the TensorRT engine is not compiled in"; }
#endif

std::unique_ptr<Engine> make_engine(const EngineBlob& blob) {
  if (blob.kind == PayloadKind::host) return make_host_engine(blob);
#ifdef TORCHTRT_VIZ_HAS_TENSORRT
  return make_tensorrt_engine(blob);
#else
  throw Error(Code::not_supported,
              "engine '" + blob.engine_name +
                  "' is a TensorRT plan, and this build has no TensorRT engine: build where CMake finds "
                  "NvInfer.h and cuda_runtime_api.h, or export the program for the host engine");
#endif
}

}  // namespace torchtrt_viz
