// The host engine: a region's graph as an inner ExecuTorch program (XNNPACK and the optimised CPU kernels),
// run in place of a TensorRT plan. Real inference; everything that it reports says "host".
#pragma once

#include <memory>

#include "core/blob.hpp"
#include "core/engine.hpp"
#include "core/error.hpp"

namespace torchtrt_viz {

// `blob.payload` has to outlive the engine.
std::unique_ptr<Engine> make_host_engine(const EngineBlob& blob);

}  // namespace torchtrt_viz
