// Failures of ours as torch's exceptions, which its dispatcher hands on to Python.
#pragma once

#include <c10/util/Exception.h>

#include "core/error.hpp"

namespace torchtrt_viz::torch_ops {

// A value that cannot be becomes ValueError in Python, anything else RuntimeError.
template <typename Work>
auto translated(Work&& work) {
  try {
    return work();
  } catch (const Error& failure) {
    const auto code = failure.code();
    TORCH_CHECK_VALUE(code != Code::refused_option && code != Code::invalid_program, failure.what());
    TORCH_CHECK(false, failure.what());
  }
}

}  // namespace torchtrt_viz::torch_ops
