// The host engine: a region's graph as an inner ExecuTorch program (XNNPACK and the optimised CPU kernels),
// run in place of a TensorRT plan. Real inference; everything that it reports says "host".
#pragma once

#include <memory>

#include "core/blob.hpp"
#include "core/engine.hpp"
#include "core/status.hpp"

namespace torchtrt_viz {

// `blob.payload` has to outlive the engine.
Status make_host_engine(const EngineBlob& blob, std::unique_ptr<Engine>& out);

}  // namespace torchtrt_viz
