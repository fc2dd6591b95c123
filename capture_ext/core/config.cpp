#include "core/config.hpp"

#include <filesystem>
#include <mutex>
#include <optional>

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

std::uint64_t change_config(const ConfigChange& change) {
  std::optional<Level> level;
  std::optional<Format> format;
  if (change.level) level = parse_level("profile level", *change.level);
  if (change.format) format = parse_format("profile format", *change.format);
  if (change.path_prefix) check_path_prefix("profile path prefix", *change.path_prefix);
  std::uint64_t published = 0;
  {
    const std::lock_guard lock(shared().mutex);
    auto& config = shared().config;
    config.execution = change.execution.value_or(config.execution);
    config.level = level.value_or(config.level);
    config.format = format.value_or(config.format);
    if (change.path_prefix) config.path_prefix = *change.path_prefix;
    published = publish(config);
  }
  // An engine notices at its next call, which may never come: what it collected is written now.
  if (change.execution && !*change.execution) regardless([] { flush_sidecars(); });
  return published;
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
