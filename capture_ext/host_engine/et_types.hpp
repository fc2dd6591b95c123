// ExecuTorch's types and errors in this project's terms.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/tensor.hpp"

namespace torchtrt_viz::et {

std::optional<DType> dtype_of(executorch::aten::ScalarType type) noexcept;
executorch::aten::ScalarType scalar_type_of(DType dtype) noexcept;

// "InvalidArgument" and so on.
std::string_view error_name(executorch::runtime::Error error) noexcept;
// What a delegate returns to the runtime for a failure of ours.
executorch::runtime::Error to_error(Code code) noexcept;
Code to_code(executorch::runtime::Error error) noexcept;

}  // namespace torchtrt_viz::et
