// A simulated device: streams and events on a clock of their own.
//
// Host time moves only when the host calls the runtime (a fixed price each) or waits. Work given to a stream
// starts when the stream is free and the host has issued it, takes its simulated time, and takes effect on
// memory when it is found to be complete: a result read too early is visibly wrong.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace standins {

inline constexpr std::int64_t kApiCallNs = 1000;
inline constexpr std::size_t kBytesPerNs = 64;  // that the device fills

struct Counts {
  std::int64_t stream_synchronize = 0;
  std::int64_t event_synchronize = 0;
  std::int64_t event_record = 0;
  std::int64_t memcpy = 0;
  std::int64_t live_allocations = 0;
  std::int64_t live_streams = 0;
  std::int64_t live_events = 0;
  std::int64_t waits() const { return stream_synchronize + event_synchronize; }
};

struct Faults {
  int malloc_after = -1;  // the n-th allocation from now fails
  int memcpy_after = -1;
  int synchronize_after = -1;
  int event_create_after = -1;
  bool enqueue = false;
  bool create_context = false;
};

extern "C" {
// The state of the one device of the process; the tests reach it through these.
std::int64_t standins_host_now();
void standins_host_advance(std::int64_t ns);
Counts* standins_counts();
Faults* standins_faults();
void standins_reset();
}

// For standins/nvinfer.cpp: `effect` happens when the work is complete. Returns when it starts.
std::int64_t enqueue(cudaStream_t stream, std::int64_t dur_ns, std::function<void()> effect);

}  // namespace standins
