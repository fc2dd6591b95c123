#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "standins/device.hpp"

struct CUstream_st {
  struct Work {
    std::int64_t end;
    std::function<void()> effect;
  };
  std::int64_t busy_until = 0;
  std::deque<Work> queue;
};

struct CUevent_st {
  bool timed = true;
  std::int64_t time = -1;
};

namespace standins {
namespace {

struct Device {
  std::mutex mutex;
  std::int64_t now = 1'000'000;
  Counts counts;
  Faults faults;
  CUstream_st default_stream;
  std::vector<cudaStream_t> streams{&default_stream};
  cudaStream_t of(cudaStream_t stream) {
    return stream == nullptr || stream == cudaStreamLegacy ? &default_stream : stream;
  }
};

Device& device() {
  static Device d;
  return d;
}

// Everything that has ended by now takes effect, in the order of its end.
void catch_up(Device& d) {
  for (;;) {
    cudaStream_t next = nullptr;
    for (cudaStream_t stream : d.streams) {
      if (!stream->queue.empty() && stream->queue.front().end <= d.now &&
          (next == nullptr || stream->queue.front().end < next->queue.front().end)) {
        next = stream;
      }
    }
    if (next == nullptr) return;
    const auto work = std::move(next->queue.front());
    next->queue.pop_front();
    if (work.effect) work.effect();
  }
}

void wait_until(Device& d, std::int64_t time) {
  d.now = std::max(d.now, time);
  catch_up(d);
}

bool fails(int& after) { return after >= 0 && after-- == 0; }

std::int64_t give(Device& d, cudaStream_t stream, std::int64_t dur_ns, std::function<void()> effect) {
  stream = d.of(stream);
  const std::int64_t start = std::max(d.now, stream->busy_until);
  stream->busy_until = start + dur_ns;
  stream->queue.push_back({stream->busy_until, std::move(effect)});
  return start;
}

}  // namespace

std::int64_t enqueue(cudaStream_t stream, std::int64_t dur_ns, std::function<void()> effect) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  return give(d, stream, dur_ns, std::move(effect));
}

extern "C" {
std::int64_t standins_host_now() {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  return d.now;
}
void standins_host_advance(std::int64_t ns) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  wait_until(d, d.now + ns);
}
Counts* standins_counts() { return &device().counts; }
Faults* standins_faults() { return &device().faults; }
void standins_reset() {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  d.counts = {};
  d.faults = {};
}
}

}  // namespace standins

using namespace standins;

// Every call of the runtime costs the host a little.
#define ENTER()                        \
  Device& d = device();                \
  const std::lock_guard lock(d.mutex); \
  d.now += kApiCallNs;                 \
  catch_up(d)

extern "C" {

cudaError_t cudaGetDevice(int* which) {
  *which = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int which) { return which == 0 ? cudaSuccess : cudaErrorInvalidValue; }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  ENTER();
  if (fails(d.faults.malloc_after)) return cudaErrorMemoryAllocation;
  *memory = std::malloc(bytes);
  ++d.counts.live_allocations;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  ENTER();
  std::free(memory);
  --d.counts.live_allocations;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  ENTER();
  ++d.counts.memcpy;
  if (fails(d.faults.memcpy_after)) return cudaErrorLaunchFailure;
  if (kind == cudaMemcpyHostToDevice) {
    // pageable memory is taken over before the call returns
    auto held = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                    static_cast<const char*>(from) + bytes);
    give(d, stream, 10'000, [to, held] { std::memcpy(to, held->data(), held->size()); });
  } else {
    give(d, stream, 10'000, [to, from, bytes] { std::memcpy(to, from, bytes); });
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  ENTER();
  give(d, stream, static_cast<std::int64_t>(bytes / kBytesPerNs),
       [memory, value, bytes] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  ENTER();
  *stream = std::make_unique<CUstream_st>().release();
  d.streams.push_back(*stream);
  ++d.counts.live_streams;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  ENTER();
  wait_until(d, stream->busy_until);
  std::erase(d.streams, stream);
  const std::unique_ptr<CUstream_st> owned(stream);
  --d.counts.live_streams;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ENTER();
  ++d.counts.stream_synchronize;
  if (fails(d.faults.synchronize_after)) return cudaErrorLaunchFailure;
  wait_until(d, d.of(stream)->busy_until);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  ENTER();
  stream = d.of(stream);
  stream->busy_until = std::max(stream->busy_until, event->time);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  ENTER();
  if (fails(d.faults.event_create_after)) return cudaErrorMemoryAllocation;
  *event = std::make_unique<CUevent_st>(CUevent_st{flags != cudaEventDisableTiming, -1}).release();
  ++d.counts.live_events;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  ENTER();
  const std::unique_ptr<CUevent_st> owned(event);
  --d.counts.live_events;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  ENTER();
  ++d.counts.event_record;
  event->time = std::max(d.now, d.of(stream)->busy_until);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ENTER();
  ++d.counts.event_synchronize;
  if (fails(d.faults.synchronize_after)) return cudaErrorLaunchFailure;
  wait_until(d, event->time);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  ENTER();
  return d.now < event->time ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  ENTER();
  if (!begin->timed || !end->timed || begin->time < 0 || end->time < 0 || d.now < end->time)
    return cudaErrorInvalidValue;
  *ms = static_cast<float>(static_cast<double>(end->time - begin->time) / 1e6);
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory"
         : error == cudaSuccess             ? "no error"
                                            : "simulated failure";
}

}  // extern "C"
