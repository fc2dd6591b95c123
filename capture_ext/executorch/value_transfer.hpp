// Values into and out of a method: by pointer where that is possible, as copies that own themselves on the
// way out.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/executor/method_meta.h>

#include <deque>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "executorch/program.hpp"
#include "host_engine/borrowed_tensor.hpp"

namespace torchtrt_viz::et {

// A method's inputs for one run.
class InputTransfer {
 public:
  void wrap(const executorch::runtime::MethodMeta& meta, const std::vector<InputValue>& inputs);
  const std::vector<executorch::runtime::EValue>& values() const noexcept { return values_; }

 private:
  void wrap_tensor(const executorch::runtime::MethodMeta& meta, std::size_t i, const InputTensor& input);
  std::deque<BorrowedTensor> tensors_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;
  std::vector<executorch::runtime::EValue> values_;
};

OutputValue copy_output(const executorch::runtime::EValue& value, std::size_t i);

MethodDescription describe_method(const executorch::runtime::MethodMeta& meta);

}  // namespace torchtrt_viz::et
