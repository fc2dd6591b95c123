#include "tensorrt/device.hpp"

#include <algorithm>

namespace torchtrt_viz {

Status make_stream(const std::shared_ptr<const Libraries>& libraries, Stream& out) {
  cudaStream_t stream = nullptr;
  Status status = libraries->check(libraries->cuda().stream_create(&stream, cudaStreamNonBlocking),
                                   "making a CUDA stream");
  if (status.ok()) out = Stream(libraries, stream);
  return status;
}

Status make_event(const std::shared_ptr<const Libraries>& libraries, bool timed, Event& out) {
  cudaEvent_t event = nullptr;
  const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
  Status status = libraries->check(libraries->cuda().event_create(&event, flags), "making a CUDA event");
  if (status.ok()) out = Event(libraries, event);
  return status;
}

Status DeviceBuffer::reserve(const std::shared_ptr<const Libraries>& libraries, std::size_t bytes) {
  // TensorRT refuses a null address even for a tensor without elements.
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes <= capacity_) return Status::success();
  memory_.reset();
  capacity_ = 0;
  void* memory = nullptr;
  Status status = libraries->check(libraries->cuda().malloc(&memory, bytes), "allocating device memory");
  if (status.ok()) {
    memory_ = DeviceMemory(libraries, memory);
    capacity_ = bytes;
  }
  return status;
}

}  // namespace torchtrt_viz
