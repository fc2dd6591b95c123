// CUDA resources with owners: streams, events, buffers.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "tensorrt/libraries.hpp"

namespace torchtrt_viz {

// A CUDA handle and the function that gives it back; its Libraries keep that function loaded.
template <typename Handle, auto Release>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<const Libraries> libraries, Handle handle)
      : libraries_(std::move(libraries)), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : libraries_(std::move(other.libraries_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      libraries_ = std::move(other.libraries_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  void reset() noexcept {
    // A failing release has nobody to tell: the context is going away.
    if (handle_ != nullptr) (void)(libraries_->cuda().*Release)(handle_);
    handle_ = nullptr;
  }

 private:
  std::shared_ptr<const Libraries> libraries_;
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, &CudaApi::stream_destroy>;
using Event = Owned<cudaEvent_t, &CudaApi::event_destroy>;
using DeviceMemory = Owned<void*, &CudaApi::free>;

// Makes `device` the calling thread's current one, and the former one again at the end: a call may come from
// any thread, and the caller's choice is not ours to change.
class DeviceGuard {
 public:
  DeviceGuard(const CudaApi& cuda, int device) : cuda_(cuda) {
    int current = device;
    if (cuda_.get_device(&current) == cudaSuccess && current != device &&
        cuda_.set_device(device) == cudaSuccess) {
      former_ = current;
    }
  }
  ~DeviceGuard() {
    if (former_ >= 0) (void)cuda_.set_device(former_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  const CudaApi& cuda_;
  int former_ = -1;
};

Stream make_stream(const std::shared_ptr<const Libraries>& libraries);
// An event with a time (for durations), or without (for waiting only, which is cheaper).
Event make_event(const std::shared_ptr<const Libraries>& libraries, bool timed);

// Device memory that grows and never shrinks.
class DeviceBuffer {
 public:
  void reserve(const std::shared_ptr<const Libraries>& libraries, std::size_t bytes);
  void* get() const noexcept { return memory_.get(); }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  DeviceMemory memory_;
  std::size_t capacity_ = 0;
};

}  // namespace torchtrt_viz
