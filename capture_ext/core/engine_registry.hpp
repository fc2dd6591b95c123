// Every engine instance of the process: its stable id, and what it did, for reports and for file names.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

struct EngineIdentity {
  std::uint64_t content_hash = 0;
  std::string name;
  std::string method;
  std::int64_t delegate_index = 0;
  std::string runtime;  // "host", "tensorrt"
  std::string owner;    // "executorch", "torch"
};

struct EngineInfo {
  EngineIdentity identity;
  std::string engine_id;      // content hash, method, delegate index: equal in every process
  std::int64_t instance = 0;  // tells apart engines of one engine_id in this process
  Level level = Level::off;
  LevelSource level_source = LevelSource::none;
  Format format = Format::etdump;
  std::string path_prefix;
  std::int64_t calls = 0;
  std::int64_t failed_calls = 0;
  std::int64_t attachments = 0;
  std::int64_t contexts = 0;
  std::vector<std::string> layers;
  std::vector<std::string> files;
  bool alive = true;
  std::string last_error;
};

// The entry outlives the engine: its files and counts stay on record.
class EngineEntry {
 public:
  explicit EngineEntry(EngineInfo info) : info_(std::move(info)) {}
  EngineInfo info() const {
    const std::lock_guard lock(mutex_);
    EngineInfo out = info_;
    out.calls = calls_.load(std::memory_order_relaxed);
    return out;
  }
  // One writer, under the engine's mutex: no read-modify-write on the path that every call takes.
  std::uint64_t count_call() noexcept {
    const auto call = calls_.load(std::memory_order_relaxed);
    calls_.store(call + 1, std::memory_order_relaxed);
    return static_cast<std::uint64_t>(call);
  }
  template <typename Change>
  void update(Change&& change) {
    const std::lock_guard lock(mutex_);
    change(info_);
  }

 private:
  mutable std::mutex mutex_;
  EngineInfo info_;
  std::atomic<std::int64_t> calls_{0};
};

TORCHTRT_VIZ_API std::shared_ptr<EngineEntry> register_engine(EngineIdentity identity);
// In the order of registration. Engines that are gone and left no file are forgotten after a while.
TORCHTRT_VIZ_API std::vector<std::shared_ptr<EngineEntry>> registered_engines();

// Collects the engines that the current thread registers while the scope lives: which engines a load made.
class TORCHTRT_VIZ_API EngineLoadScope {
 public:
  EngineLoadScope();
  ~EngineLoadScope();
  EngineLoadScope(const EngineLoadScope&) = delete;
  EngineLoadScope& operator=(const EngineLoadScope&) = delete;
  const std::vector<std::shared_ptr<EngineEntry>>& engines() const noexcept { return engines_; }

 private:
  friend std::shared_ptr<EngineEntry> register_engine(EngineIdentity identity);
  std::vector<std::shared_ptr<EngineEntry>> engines_;
  EngineLoadScope* outer_;
};

// Letters, digits, '_', '.' and '-' are kept, anything else becomes '_'; never empty, at most 80 bytes.
TORCHTRT_VIZ_API std::string file_name_part(std::string_view text);

// Which rank of a distributed run this process is; -1 unknown. From the environment (RANK) until set.
TORCHTRT_VIZ_API void set_rank(std::int64_t rank);
TORCHTRT_VIZ_API std::int64_t rank();

// The beginning of the names of an engine's files. No two engines, processes or ranks share one: engine name
// and id, then rank, process id with a token of its start (process ids are used again), and the instance.
TORCHTRT_VIZ_API std::string file_stem(const EngineInfo& info);

}  // namespace torchtrt_viz
