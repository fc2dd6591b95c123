// One engine by itself, outside of any program: made of a blob, called with memory on the host or the device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/instrumented_engine.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

// An engine with the bytes that it was made of.
struct LoadedEngine {
  std::vector<std::byte> bytes;
  std::unique_ptr<InstrumentedEngine> engine;  // goes before the bytes
};

// `name` is what its files are called after; empty: the name in the blob. `owner` as in EngineIdentity.
TORCHTRT_VIZ_API LoadedEngine load_engine(std::span<const std::byte> blob, const std::string& name,
                                          const std::string& owner, InstrumentedEngine::Options options);

}  // namespace torchtrt_viz
