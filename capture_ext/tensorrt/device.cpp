#include "tensorrt/device.hpp"

#include <algorithm>

namespace torchtrt_viz {

Stream make_stream(const std::shared_ptr<const Libraries>& libraries) {
  cudaStream_t stream = nullptr;
  libraries->check(libraries->cuda().stream_create(&stream, cudaStreamNonBlocking), "making a CUDA stream");
  return {libraries, stream};
}

Event make_event(const std::shared_ptr<const Libraries>& libraries, bool timed) {
  cudaEvent_t event = nullptr;
  const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
  libraries->check(libraries->cuda().event_create(&event, flags), "making a CUDA event");
  return {libraries, event};
}

void DeviceBuffer::reserve(const std::shared_ptr<const Libraries>& libraries, std::size_t bytes) {
  // TensorRT refuses a null address even for a tensor without elements.
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes <= capacity_) return;
  memory_.reset();
  capacity_ = 0;
  void* memory = nullptr;
  libraries->check(libraries->cuda().malloc(&memory, bytes), "allocating device memory");
  memory_ = DeviceMemory(libraries, memory);
  capacity_ = bytes;
}

}  // namespace torchtrt_viz
