// The process-wide profiling configuration: one snapshot, changed as a whole, published by a generation.
//
// An engine remembers the generation that it applied last. Before an execution it compares that with
// config_generation(), one atomic load, and copies the snapshot only where they differ, under its own mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/options.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

struct ProfileConfig {
  bool execution = false;  // off: engines follow their own options
  Level level = Level::layers;
  Format format = Format::perfetto;
  std::string path_prefix;  // directory of trace files; the temporary directory until set
  std::uint64_t generation = 0;
};

struct ConfigChange {
  std::optional<bool> execution = {};
  std::optional<std::string> level = {};
  std::optional<std::string> format = {};
  std::optional<std::string> path_prefix = {};
};

namespace detail {
extern TORCHTRT_VIZ_API std::atomic<std::uint64_t> config_generation;
}

// Acquire: who sees a generation also sees the snapshot that it stands for.
inline std::uint64_t config_generation() noexcept {
  return detail::config_generation.load(std::memory_order_acquire);
}

TORCHTRT_VIZ_API ProfileConfig config_snapshot();

// All or nothing: where one value is refused, nothing changes. Returns the new generation, which a change
// that changes no value makes too.
TORCHTRT_VIZ_API std::uint64_t change_config(const ConfigChange& change);

// Back to what a new process has (a new generation all the same).
TORCHTRT_VIZ_API std::uint64_t reset_config();

}  // namespace torchtrt_viz
