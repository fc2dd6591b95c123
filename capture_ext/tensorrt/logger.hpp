// TensorRT's log: keeps the last error, which is the only explanation that TensorRT gives for a null result.
#pragma once

#include <NvInfer.h>

#include <mutex>
#include <string>

namespace torchtrt_viz {

class Logger final : public nvinfer1::ILogger {
 public:
  // Called from TensorRT's threads.
  void log(Severity severity, nvinfer1::AsciiChar const* text) noexcept override {
    if (severity > Severity::kERROR || text == nullptr) return;
    try {
      const std::lock_guard lock(mutex_);
      last_error_ = text;
    } catch (...) {
      return;  // no memory for the text: the error itself is still reported, without it
    }
  }

  // " (the text)" of the last error and forget it; "" without one.
  std::string explain() {
    const std::lock_guard lock(mutex_);
    std::string text = last_error_.empty() ? "" : " (" + last_error_ + ")";
    last_error_.clear();
    return text;
  }

 private:
  std::mutex mutex_;
  std::string last_error_;
};

}  // namespace torchtrt_viz
