#include "executorch/event_log.hpp"

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/recorder.hpp"
#include "executorch/ticks.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

// Of an entry that was made while nothing was kept.
constexpr std::int64_t kNotKept = -1;

std::uint64_t now_ticks() noexcept { return ticks_of(monotonic_ns()); }

}  // namespace

EventLog::EventLog() {
  (void)now_ticks();  // the clocks are related once per process: not in the first event
  clear();
}

void EventLog::clear() {
  const std::lock_guard lock(mutex_);
  events_.clear();
  blocks_.clear();
  text_ids_.clear();
  texts_.clear();
  texts_.emplace_back();
  run_first_block_ = 0;
}

void EventLog::begin_run(std::string method) {
  active_.store(recording(), std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  run_method_ = std::move(method);
  run_first_block_ = blocks_.size();
}

void EventLog::end_run(RunStatus status, const std::string& error) {
  const auto end = now_ticks();
  const std::lock_guard lock(mutex_);
  for (auto i = run_first_block_; i < blocks_.size(); ++i) {
    auto& block = blocks_[i];
    if (block.end == 0) block.end = end;
    block.status = status;
    block.error = error;
  }
  run_method_.clear();
  run_first_block_ = blocks_.size();
}

EventColumns EventLog::snapshot(std::size_t first_block) const {
  const std::lock_guard lock(mutex_);
  const auto block = std::min(first_block, blocks_.size());
  const auto event = block < blocks_.size() ? blocks_[block].first_event : events_.size();
  EventColumns out{{events_.begin() + static_cast<std::ptrdiff_t>(event), events_.end()},
                   {blocks_.begin() + static_cast<std::ptrdiff_t>(block), blocks_.end()},
                   {texts_.begin(), texts_.end()}};
  for (auto& kept : out.blocks) kept.first_event -= event;
  return out;
}

std::vector<EventColumns::Block> EventLog::blocks(std::vector<std::uint64_t>& event_counts,
                                                  std::vector<std::string>& names) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto next = i + 1 < blocks_.size() ? blocks_[i + 1].first_event : events_.size();
    event_counts.push_back(next - blocks_[i].first_event);
    names.push_back(texts_[blocks_[i].name]);
  }
  return blocks_;
}

std::size_t EventLog::event_count() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

// Under the mutex.
std::uint32_t EventLog::text(std::string_view value) {
  if (const auto found = text_ids_.find(value); found != text_ids_.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(texts_.size());
  text_ids_.emplace(texts_.emplace_back(value), id);
  return id;
}

// Under the mutex.
void EventLog::begin_block(std::string_view name) {
  EventColumns::Block block;
  block.name = text(name);
  block.first_event = events_.size();
  block.bundled_input = bundled_input_index_;
  block.method = run_method_;
  block.start = now_ticks();
  block.thread = thread_id();
  if (blocks_.size() > run_first_block_ && blocks_.back().end == 0) blocks_.back().end = block.start;
  blocks_.push_back(std::move(block));
}

void EventLog::create_event_block(const char* name) {
  if (!active()) return;
  const std::lock_guard lock(mutex_);
  begin_block(name == nullptr ? "" : name);
}

// Under the mutex.
void EventLog::append(const EventColumns::Event& event) {
  if (blocks_.empty()) begin_block("Default");  // an event needs a block to be in
  events_.push_back(event);
}

EventLog::Entry EventLog::start_profiling(const char* name, ChainID chain, DebugHandle instruction) {
  Entry entry{};
  const bool given = chain != rt::kUnsetChainId || instruction != rt::kUnsetDebugHandle;
  entry.chain_id = given ? chain : chain_id_;
  entry.debug_handle = given ? instruction : debug_handle_;
  entry.delegate_event_id_type = rt::DelegateDebugIdType::kNone;
  if (!active()) {
    entry.event_id = kNotKept;
    return entry;
  }
  {
    const std::lock_guard lock(mutex_);
    entry.event_id = text(name == nullptr ? "" : name);
  }
  entry.start_time = now_ticks();
  return entry;
}

void EventLog::end_profiling(Entry entry) {
  if (entry.event_id == kNotKept) return;
  EventColumns::Event event;
  event.end = now_ticks();
  event.start = entry.start_time;
  event.name = static_cast<std::uint32_t>(entry.event_id);
  event.chain = entry.chain_id;
  event.instruction = static_cast<std::int32_t>(entry.debug_handle);
  const std::lock_guard lock(mutex_);
  if (event.name < texts_.size()) append(event);  // an event that began before clear() is gone
}

EventLog::Entry EventLog::start_profiling_delegate(const char* name, DelegateId id) {
  Entry entry{};
  entry.chain_id = chain_id_;
  entry.debug_handle = debug_handle_;
  if (!active()) {
    entry.delegate_event_id_type = rt::DelegateDebugIdType::kNone;
    entry.event_id = kNotKept;
    return entry;
  }
  if (name != nullptr) {
    entry.delegate_event_id_type = rt::DelegateDebugIdType::kStr;
    const std::lock_guard lock(mutex_);
    entry.event_id = text(name);
  } else {
    entry.delegate_event_id_type = rt::DelegateDebugIdType::kInt;
    entry.event_id = id;
  }
  entry.start_time = now_ticks();
  return entry;
}

void EventLog::append_delegate(Entry entry, et_timestamp_t end, const void* metadata, std::size_t size) {
  if (entry.delegate_event_id_type == rt::DelegateDebugIdType::kNone) return;
  EventColumns::Event event;
  event.start = entry.start_time;
  event.end = end;
  event.chain = entry.chain_id;
  event.instruction = static_cast<std::int32_t>(entry.debug_handle);
  const bool named = entry.delegate_event_id_type == rt::DelegateDebugIdType::kStr;
  if (named) {
    event.delegate_name = static_cast<std::uint32_t>(entry.event_id);
  } else {
    event.delegate_int = static_cast<std::int32_t>(entry.event_id);
  }
  const std::lock_guard lock(mutex_);
  if (event.delegate_name >= texts_.size()) return;
  if (metadata != nullptr && size != 0) event.metadata = text({static_cast<const char*>(metadata), size});
  append(event);
}

void EventLog::end_profiling_delegate(Entry entry, const void* metadata, std::size_t size) {
  append_delegate(entry, now_ticks(), metadata, size);
}

void EventLog::log_profiling_delegate(const char* name, DelegateId id, et_timestamp_t start,
                                      et_timestamp_t end, const void* metadata, std::size_t size) {
  auto entry = start_profiling_delegate(name, id);
  entry.start_time = start;
  append_delegate(entry, end, metadata, size);
}

double event_cost_ns(std::size_t events) {
  EventLog log;
  rt::EventTracer& tracer = log;  // as the runtime calls it
  tracer.create_event_block("cost");
  const auto begin = monotonic_ns();
  for (std::size_t i = 0; i < events; ++i) tracer.end_profiling(tracer.start_profiling("cost", 0, 0));
  return events == 0 ? 0.0 : static_cast<double>(monotonic_ns() - begin) / static_cast<double>(events);
}

}  // namespace torchtrt_viz::et
