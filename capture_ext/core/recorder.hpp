// Recordings: collect the spans of every engine of the process, whoever calls it and with whatever tracer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine_registry.hpp"
#include "core/layers.hpp"
#include "core/span.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

struct RecordedColumns {
  std::vector<std::int32_t> engine;  // row of `engines`
  std::vector<std::int64_t> call;
  std::vector<std::int8_t> kind;
  std::vector<std::int32_t> name;  // row of `names`
  std::vector<std::int64_t> start_ns, end_ns;
  std::vector<std::int64_t> thread;  // kernel's thread id
  std::vector<std::int8_t> timing;
  std::vector<std::int8_t> on_device;
  std::vector<std::string> names;   // ids of phases and, apart for each engine, of layers
  std::vector<std::string> labels;  // beside `names`: what people read
  std::vector<EngineInfo> engines;
  std::int64_t dropped = 0;
};

struct RecordingState;

class TORCHTRT_VIZ_API Recording {
 public:
  // Begins at once; at most `capacity` spans are kept, later ones are counted as dropped.
  explicit Recording(std::size_t capacity);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // Ends the recording and gives what it collected; empty when called again.
  RecordedColumns stop();

 private:
  std::shared_ptr<RecordingState> state_;
};

namespace detail {
extern TORCHTRT_VIZ_API std::atomic<int> recordings;
}

inline bool recording() noexcept { return detail::recordings.load(std::memory_order_relaxed) > 0; }

// One lock for all spans of a call. Called under the engine's mutex.
TORCHTRT_VIZ_API void record_spans(const std::shared_ptr<EngineEntry>& engine, const LayerTable& layers,
                                   std::span<const SpanRecord> spans);

// The kernel's id of the current thread, as torch.profiler reports it.
TORCHTRT_VIZ_API std::int64_t thread_id() noexcept;

}  // namespace torchtrt_viz
