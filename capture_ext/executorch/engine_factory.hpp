// Which engine runs a blob.
#pragma once

#include <memory>

#include "core/blob.hpp"
#include "core/engine.hpp"
#include "core/status.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

// Whether plans of TensorRT can be run: built in only where CMake found NvInfer.h and CUDA's headers.
TORCHTRT_VIZ_API bool has_tensorrt_engine() noexcept;

// `blob.payload` has to outlive an engine of kind host.
TORCHTRT_VIZ_API Status make_engine(const EngineBlob& blob, std::unique_ptr<Engine>& out);

}  // namespace torchtrt_viz
