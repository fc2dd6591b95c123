// The event tracer of a program session: every event of the runtime and of its delegates, in columns.
//
// In place of the runtime's ETDumpGen, which is not thread safe, can be read once, aborts the process when it
// is called in the wrong state, and takes four times as long for an event. Any thread may log at any time;
// the events can be read at any time and as often as wanted (etdump_writer.hpp makes the file).
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/visibility.hpp"

namespace torchtrt_viz::et {

enum class RunStatus : std::uint8_t { unfinished, ok, failed };

// What was logged, by value. Texts are numbered from 1; 0 is none.
struct EventColumns {
  struct Event {
    std::uint64_t start = 0;  // ticks of the runtime
    std::uint64_t end = 0;
    std::uint32_t name = 0;  // of events of the runtime
    std::int32_t chain = -1;
    std::int32_t instruction = 0;
    std::int32_t delegate_int = -1;
    std::uint32_t delegate_name = 0;  // of events of delegates that are named
    std::uint32_t metadata = 0;
  };
  struct Block {
    std::uint32_t name = 0;
    std::uint64_t first_event = 0;
    std::int32_t bundled_input = -1;
    std::string method;  // the file has no place for it
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::int64_t thread = 0;
    RunStatus status = RunStatus::unfinished;
    std::string error;
  };
  std::vector<Event> events;  // in the order of their ends, as ETDumpGen writes them
  std::vector<Block> blocks;
  std::vector<std::string> texts;  // texts[0] is empty
};

class TORCHTRT_VIZ_API EventLog final : public executorch::runtime::EventTracer {
 public:
  EventLog();

  // Blocks that the runtime begins until the matching end_run() belong to this run.
  void begin_run(std::string method);
  void end_run(RunStatus status, const std::string& error);

  // Switched off, the log stays attached and keeps nothing; a change takes effect with the next run.
  void set_recording(bool on) noexcept { recording_.store(on, std::memory_order_relaxed); }
  bool recording() const noexcept { return recording_.load(std::memory_order_relaxed); }

  // What was logged from a block on.
  EventColumns snapshot(std::size_t first_block = 0) const;
  std::vector<EventColumns::Block> blocks(std::vector<std::uint64_t>& event_counts,
                                          std::vector<std::string>& names) const;
  std::size_t event_count() const;
  void clear();

 private:
  using Entry = executorch::runtime::EventTracerEntry;
  using ChainID = executorch::runtime::ChainID;
  using DebugHandle = executorch::runtime::DebugHandle;
  using DelegateId = executorch::runtime::DelegateDebugIntId;
  using Bool = executorch::runtime::Result<bool>;

  void create_event_block(const char* name) override;
  Entry start_profiling(const char* name, ChainID chain, DebugHandle instruction) override;
  void end_profiling(Entry entry) override;
  Entry start_profiling_delegate(const char* name, DelegateId id) override;
  void end_profiling_delegate(Entry entry, const void* metadata, std::size_t size) override;
  void log_profiling_delegate(const char* name, DelegateId id, et_timestamp_t start, et_timestamp_t end,
                              const void* metadata, std::size_t size) override;
  // Allocations are not kept: executorch's own reader refuses files that have any.
  void track_allocation(executorch::runtime::AllocatorID, std::size_t) override {}
  executorch::runtime::AllocatorID track_allocator(const char*) override { return 0; }
  // Values of tensors are not kept; the runtime asks for them at debug levels that nobody sets here.
  Bool log_evalue(const executorch::runtime::EValue&, executorch::runtime::LoggedEValueType) override {
    return false;
  }
  Bool log_intermediate_output_delegate(const char*, DelegateId, const executorch::aten::Tensor&) override {
    return false;
  }
  Bool log_intermediate_output_delegate(const char*, DelegateId,
                                        executorch::runtime::ArrayRef<executorch::aten::Tensor>) override {
    return false;
  }
  Bool log_intermediate_output_delegate(const char*, DelegateId, const int&) override { return false; }
  Bool log_intermediate_output_delegate(const char*, DelegateId, const bool&) override { return false; }
  Bool log_intermediate_output_delegate(const char*, DelegateId, const double&) override { return false; }
  void set_delegation_intermediate_output_filter(executorch::runtime::EventTracerFilterBase*) override {}

  bool active() const noexcept { return active_.load(std::memory_order_relaxed); }
  std::uint32_t text(std::string_view value);
  void begin_block(std::string_view name);
  void append(const EventColumns::Event& event);
  void append_delegate(Entry entry, et_timestamp_t end, const void* metadata, std::size_t size);

  std::atomic<bool> recording_{true};
  std::atomic<bool> active_{true};  // of the run that goes on: whole runs are kept or none of it
  mutable std::mutex mutex_;
  std::vector<EventColumns::Event> events_;
  std::vector<EventColumns::Block> blocks_;
  std::deque<std::string> texts_;  // never moves what it holds
  std::unordered_map<std::string_view, std::uint32_t> text_ids_;
  std::string run_method_;
  std::size_t run_first_block_ = 0;
};

// What one event costs in this process, both readings of the clock among it, measured on a log of its own.
TORCHTRT_VIZ_API double event_cost_ns(std::size_t events);

}  // namespace torchtrt_viz::et
