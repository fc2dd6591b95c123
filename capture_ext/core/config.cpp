#include "core/config.hpp"

#include <filesystem>
#include <mutex>

#include "core/sidecar.hpp"

namespace torchtrt_viz {
namespace detail {
std::atomic<std::uint64_t> config_generation{0};
}

namespace {

ProfileConfig initial() {
  ProfileConfig config;
  std::error_code failed;
  config.path_prefix = std::filesystem::temp_directory_path(failed).string();
  if (failed || config.path_prefix.empty()) config.path_prefix = "/tmp";
  return config;
}

struct Shared {
  std::mutex mutex;
  ProfileConfig config = initial();
};

// Never destroyed: an engine may be torn down after the statics of this library.
Shared& shared() {
  static Shared* const instance = new Shared;  // NOLINT
  return *instance;
}

// Under the mutex.
std::uint64_t publish(ProfileConfig& config) {
  config.generation += 1;
  detail::config_generation.store(config.generation, std::memory_order_release);
  return config.generation;
}

}  // namespace

ProfileConfig config_snapshot() {
  const std::lock_guard lock(shared().mutex);
  return shared().config;
}

Status change_config(const ConfigChange& change, std::uint64_t* generation) {
  Level level{};
  Format format{};
  if (change.level) {
    if (auto status = parse_level("profile level", *change.level, level); !status.ok()) return status;
  }
  if (change.format) {
    if (auto status = parse_format("profile format", *change.format, format); !status.ok()) return status;
  }
  if (change.path_prefix) {
    if (auto status = check_path_prefix("profile path prefix", *change.path_prefix); !status.ok())
      return status;
  }
  {
    const std::lock_guard lock(shared().mutex);
    auto& config = shared().config;
    if (change.execution) config.execution = *change.execution;
    if (change.level) config.level = level;
    if (change.format) config.format = format;
    if (change.path_prefix) config.path_prefix = *change.path_prefix;
    const auto published = publish(config);
    if (generation != nullptr) *generation = published;
  }
  // An engine notices at its next call, which may never come: what it collected is written now.
  if (change.execution && !*change.execution) (void)flush_sidecars();
  return Status::success();
}

std::uint64_t reset_config() {
  const std::lock_guard lock(shared().mutex);
  auto& config = shared().config;
  const auto last = config.generation;
  config = initial();
  config.generation = last;
  return publish(config);
}

}  // namespace torchtrt_viz
