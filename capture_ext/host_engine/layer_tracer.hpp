// The event tracer inside the host engine: the inner program's operators become the engine's layers.
//
// Only leaves count, so that no time is in two layers:
//   - an operator that the runtime calls (native_call_*): both ends measured here;
//   - a call of an inner delegate (XNNPACK) that the exporter says is one operator of the graph: both ends
//   measured
//     here, and what the delegate made of it are the names of its kernels;
//   - a call of an inner delegate otherwise: both ends measured here, then split into the operators that the
//     delegate reports and the rest. XNNPACK reports whole microseconds and no positions (its events are laid
//     end to end by its own profiler), so these layers keep that duration, are laid end to end from the start
//     of the call and say so ("laid_out"); should they add up to more than the call they are scaled down to
//     it
//     ("scaled"); what the call took besides is one more layer ("rest").
// Their sum is therefore never more than the time of the inner program, and that lies inside enqueue.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/layers.hpp"
#include "core/span.hpp"

namespace torchtrt_viz::et {

class LayerTracer final : public executorch::runtime::EventTracer {
 public:
  explicit LayerTracer(LayerTable& layers) : layers_(layers) {}

  // Spans go to `out` from open() to close(); outside that every callback returns at once.
  void open(std::uint64_t call, SpanReports* out);
  void close();

 private:
  using Entry = executorch::runtime::EventTracerEntry;
  using ChainID = executorch::runtime::ChainID;
  using DebugHandle = executorch::runtime::DebugHandle;
  using DelegateId = executorch::runtime::DelegateDebugIntId;

  void create_event_block(const char*) override {}
  Entry start_profiling(const char* name, ChainID chain, DebugHandle instruction) override;
  void end_profiling(Entry entry) override;
  Entry start_profiling_delegate(const char* name, DelegateId id) override;
  void end_profiling_delegate(Entry entry, const void* metadata, std::size_t size) override;
  void log_profiling_delegate(const char* name, DelegateId id, et_timestamp_t start, et_timestamp_t end,
                              const void* metadata, std::size_t size) override;
  void track_allocation(executorch::runtime::AllocatorID, std::size_t) override {}
  executorch::runtime::AllocatorID track_allocator(const char*) override { return 0; }
  executorch::runtime::Result<bool> log_evalue(const executorch::runtime::EValue&,
                                               executorch::runtime::LoggedEValueType) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(
      const char*, DelegateId, const executorch::aten::Tensor&) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(
      const char*, DelegateId, executorch::runtime::ArrayRef<executorch::aten::Tensor>) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(const char*, DelegateId,
                                                                     const int&) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(const char*, DelegateId,
                                                                     const bool&) override {
    return false;
  }
  executorch::runtime::Result<bool> log_intermediate_output_delegate(const char*, DelegateId,
                                                                     const double&) override {
    return false;
  }
  void set_delegation_intermediate_output_filter(executorch::runtime::EventTracerFilterBase*) override {}

  enum class Kind : std::uint8_t { other, operation, kernel, delegate };
  struct Frame {
    Kind kind = Kind::other;
    std::int64_t start_ns = 0;
    const char* name = nullptr;  // the caller's, alive until the frame ends
    std::size_t spans_before = 0;
  };
  struct Part {               // an operator that an inner delegate reported
    std::int32_t layer = -1;  // -1 in a call that is one layer
    std::int64_t dur_ns = 0;
  };
  // The layers of one call in the order of their events: the next call has the same ones.
  struct Known {
    std::int64_t place = -1;  // chain and instruction
    std::string name;
    std::int32_t layer = -1;
  };

  std::int32_t layer_of(std::string_view event, std::string_view suffix, std::string_view op);
  bool whole_call();
  void add_part(const char* name, std::int64_t dur_ns);
  void end_delegate(const Frame& frame, std::int64_t end_ns);
  void push(std::int32_t layer, std::int64_t start_ns, std::int64_t end_ns, Timing timing);
  std::int64_t place() const noexcept;
  std::string place_id() const;

  LayerTable& layers_;
  SpanReports* out_ = nullptr;
  std::uint64_t call_ = 0;
  std::vector<Frame> frames_;
  std::vector<Part> parts_;
  std::string kernels_;  // names of the parts of a call that is one layer, until that layer is known
  bool whole_ = false;   // the delegate's call under way is one layer
  std::unordered_map<std::int64_t, bool> whole_calls_;
  std::vector<Known> known_;
  std::size_t next_known_ = 0;
};

}  // namespace torchtrt_viz::et
