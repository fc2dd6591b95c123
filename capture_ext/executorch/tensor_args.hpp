// A delegate's arguments as an engine's inputs and outputs.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "core/tensor.hpp"

namespace torchtrt_viz::et {

class TensorArgs {
 public:
  // `inputs` arguments, then `outputs`. The arguments have to outlive this object.
  void wrap(executorch::runtime::Span<executorch::runtime::EValue*> args, std::size_t inputs,
            std::size_t outputs);

  std::span<const TensorView> inputs() const noexcept { return inputs_; }
  std::span<OutputView> outputs() noexcept { return outputs_; }
  // Numbers that the engine wrote go back into the arguments.
  void unwrap();

 private:
  union Number {
    std::int64_t integer;
    double real;
    bool boolean;
  };
  void wrap_value(executorch::runtime::EValue& value, std::size_t i, TensorView& view);
  std::vector<TensorView> inputs_;
  std::vector<OutputView> outputs_;
  std::vector<Number> numbers_;  // sized once: views point into it
  executorch::runtime::Span<executorch::runtime::EValue*> args_{nullptr, static_cast<std::size_t>(0)};
};

}  // namespace torchtrt_viz::et
