#include "executorch/event_log.hpp"

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/recorder.hpp"
#include "executorch/ticks.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

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
  const std::lock_guard lock(mutex_);
  run_method_ = std::move(method);
  run_first_block_ = blocks_.size();
}

void EventLog::end_run(RunStatus status, std::string error) {
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

EventColumns EventLog::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {events_, blocks_, {texts_.begin(), texts_.end()}};
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
  {
    const std::lock_guard lock(mutex_);
    entry.event_id = text(name == nullptr ? "" : name);
  }
  entry.start_time = now_ticks();
  return entry;
}

void EventLog::end_profiling(Entry entry) {
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

}  // namespace torchtrt_viz::et
