// Which engine runs a blob.
#pragma once

#include <memory>
#include <string>

#include "core/blob.hpp"
#include "core/engine.hpp"
#include "core/error.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

// Whether plans of TensorRT can be run: built in only where CMake found NvInfer.h and CUDA's headers.
TORCHTRT_VIZ_API bool has_tensorrt_engine() noexcept;

// Why this process cannot run them; empty: it can. Opens the libraries and asks for a GPU.
TORCHTRT_VIZ_API std::string tensorrt_problem();

// `blob.payload` has to outlive an engine of kind host.
TORCHTRT_VIZ_API std::unique_ptr<Engine> make_engine(const EngineBlob& blob);

}  // namespace torchtrt_viz
