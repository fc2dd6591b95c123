// An engine with profiling around it: one mutex, one call number, the phases timed at their real boundaries.
//
// With the level at "off" a call costs one atomic load (and the mutex and the call number, which it needs
// anyway). At any other level nothing is measured either unless somebody reads it: a tracer (ReportSink), a
// recording, a sidecar.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/config.hpp"
#include "core/engine.hpp"
#include "core/engine_registry.hpp"
#include "core/error.hpp"
#include "core/options.hpp"
#include "core/recorder.hpp"
#include "core/sidecar.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

// What one call measured. Spans are ordered by their end; the last is the delegate's where the call was
// measured.
struct CallReport {
  const EngineInfo& engine;  // identity, ids and options; not the counts
  const LayerTable& layers;
  std::span<const SpanRecord> spans;
  std::uint64_t call = 0;
  const Error* failure = nullptr;  // of a call that failed
};

// Reads the report of a call, under the engine's mutex, before the call returns.
class ReportSink {
 public:
  virtual ~ReportSink() = default;
  // The most detailed level that the sink takes.
  virtual Level limit() const = 0;
  virtual void report(const CallReport& report) = 0;
};

class TORCHTRT_VIZ_API InstrumentedEngine {
 public:
  struct Options {
    OptionSet load;
    OptionSet specs;
    SidecarKind sidecars = SidecarKind::delegate;
  };

  // Resolves the options, checks that sidecars can be written where they are asked for, makes the context.
  static std::unique_ptr<InstrumentedEngine> create(std::unique_ptr<Engine> engine, EngineIdentity identity,
                                                    Options options);
  ~InstrumentedEngine();

  // Brings every living engine up to the process-wide configuration now instead of at its next call: what
  // that takes, such as a new execution context for layers, is then no part of a call that somebody measures.
  // Waits for calls that are under way.
  static void apply_everywhere();

  // Whether the next call may be measured: tells an adapter to note when it was entered.
  bool may_measure() const noexcept { return level_.load(std::memory_order_relaxed) != Level::off; }

  // Runs once. `entered_ns`: when the adapter was entered, 0 for now. `sink` may be null; it has the report
  // of a call that fails, too, before this throws.
  void call(std::span<const TensorView> inputs, std::span<OutputView> outputs, void* stream, ReportSink* sink,
            std::int64_t entered_ns = 0);

  const Engine& engine() const noexcept { return *engine_; }
  const std::shared_ptr<EngineEntry>& entry() const noexcept { return entry_; }

 private:
  InstrumentedEngine(std::unique_ptr<Engine> engine, EngineIdentity identity, Options options);
  void apply(bool loading);
  void call_watched(std::uint64_t call, std::span<const TensorView> inputs, std::span<OutputView> outputs,
                    void* stream, ReportSink* sink, std::int64_t entered_ns);
  void note_failure(const Error& failure);
  void run(std::uint64_t call, std::span<const TensorView> inputs, std::span<OutputView> outputs,
           void* stream);
  void run_measured(std::uint64_t call, Level level, std::span<const TensorView> inputs,
                    std::span<OutputView> outputs, void* stream, std::int64_t entered_ns);
  void publish(std::uint64_t call, const Error* failure, ReportSink* sink);

  std::mutex mutex_;
  const Options options_;
  const std::shared_ptr<EngineEntry> entry_;
  std::shared_ptr<Sidecar> sidecar_;
  std::unique_ptr<Engine> engine_;  // before the sidecar in destruction: its last reports still go there
  EngineInfo info_;
  std::atomic<Level> level_{Level::off};
  std::uint64_t applied_generation_ = UINT64_MAX;
  std::uint64_t off_generation_ =
      UINT64_MAX;  // the one applied, where it left the engine off: one comparison
  std::size_t layers_published_ = 0;
  std::vector<SpanRecord> spans_;
};

}  // namespace torchtrt_viz
