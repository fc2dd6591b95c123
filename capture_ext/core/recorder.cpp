#include "core/recorder.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "core/clock.hpp"
#include "core/layers.hpp"

namespace torchtrt_viz {
namespace detail {
std::atomic<int> recordings{0};
}

struct RecordingState {
  std::mutex mutex;
  bool open = true;
  std::size_t capacity = 0;
  std::int64_t begin_ns = 0;
  RecordedColumns columns;
  std::unordered_map<const EngineEntry*, std::int32_t> engine_rows;
  std::unordered_map<std::uint64_t, std::int32_t> name_rows;
  std::vector<std::shared_ptr<EngineEntry>> engines;

  std::int32_t engine_row(const std::shared_ptr<EngineEntry>& engine) {
    const auto [at, fresh] = engine_rows.try_emplace(engine.get(), static_cast<std::int32_t>(engines.size()));
    if (fresh) {
      engines.push_back(engine);
      columns.engines.push_back(engine->info());
    }
    return at->second;
  }

  // Two engines may have a layer of the same id: those are two names.
  std::int32_t name_row(std::int32_t engine, const SpanRecord& span, const LayerTable& layers) {
    const auto owner = span.layer >= 0 ? static_cast<std::uint64_t>(engine) + 1 : 0;
    const auto [at, fresh] =
        name_rows.try_emplace(owner << 32U | span.name, static_cast<std::int32_t>(columns.names.size()));
    if (fresh) {
      columns.names.emplace_back(name_text(span.name));
      columns.labels.push_back(span.layer >= 0 ? layers[span.layer].name : columns.names.back());
    }
    return at->second;
  }

  void append(const std::shared_ptr<EngineEntry>& engine, const LayerTable& layers,
              std::span<const SpanRecord> spans) {
    const auto thread = thread_id();
    const std::lock_guard lock(mutex);
    if (!open) return;
    std::int32_t row = -1;
    for (const auto& span : spans) {
      // The device's times come late: these are of a call before the recording.
      if (span.on_device && span.start_ns < begin_ns) continue;
      if (columns.start_ns.size() == capacity) {
        ++columns.dropped;
        continue;
      }
      if (row < 0) row = engine_row(engine);
      columns.engine.push_back(row);
      columns.call.push_back(static_cast<std::int64_t>(span.call));
      columns.kind.push_back(static_cast<std::int8_t>(span.kind));
      columns.name.push_back(name_row(row, span, layers));
      columns.start_ns.push_back(span.start_ns);
      columns.end_ns.push_back(span.end_ns);
      columns.thread.push_back(thread);
      columns.timing.push_back(static_cast<std::int8_t>(span.timing));
      columns.on_device.push_back(span.on_device ? 1 : 0);
    }
  }
};

namespace {

struct Open {
  std::mutex mutex;
  std::vector<std::shared_ptr<RecordingState>> states;
};

Open& open_recordings() {
  static Open* const instance = new Open;  // NOLINT
  return *instance;
}

}  // namespace

Recording::Recording(std::size_t capacity) : state_(std::make_shared<RecordingState>()) {
  state_->capacity = capacity;
  state_->begin_ns = monotonic_ns();
  auto& open = open_recordings();
  const std::lock_guard lock(open.mutex);
  open.states.push_back(state_);
  detail::recordings.fetch_add(1, std::memory_order_relaxed);
}

Recording::~Recording() { (void)stop(); }

RecordedColumns Recording::stop() {
  auto& open = open_recordings();
  {
    const std::lock_guard lock(open.mutex);
    if (std::erase(open.states, state_) != 0) {
      detail::recordings.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  const std::lock_guard lock(state_->mutex);
  state_->open = false;
  RecordedColumns out = std::move(state_->columns);
  state_->columns = {};
  // As they are now, at the level that they were recorded at.
  for (std::size_t i = 0; i < state_->engines.size(); ++i) {
    auto info = state_->engines[i]->info();
    info.level = out.engines[i].level;
    info.level_source = out.engines[i].level_source;
    info.format = out.engines[i].format;
    out.engines[i] = std::move(info);
  }
  state_->engines.clear();
  return out;
}

void record_spans(const std::shared_ptr<EngineEntry>& engine, const LayerTable& layers,
                  std::span<const SpanRecord> spans) {
  std::vector<std::shared_ptr<RecordingState>> states;
  {
    const std::lock_guard lock(open_recordings().mutex);
    states = open_recordings().states;
  }
  for (const auto& state : states) state->append(engine, layers, spans);
}

std::int64_t thread_id() noexcept {
  thread_local const std::int64_t id = syscall(SYS_gettid);
  return id;
}

}  // namespace torchtrt_viz
