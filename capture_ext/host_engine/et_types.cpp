#include "host_engine/et_types.hpp"

namespace torchtrt_viz::et {

using executorch::aten::ScalarType;
using executorch::runtime::Error;

namespace {

struct Pair {
  ScalarType scalar;
  DType dtype;
};

constexpr Pair kTypes[] = {
    {ScalarType::Byte, DType::uint8},
    {ScalarType::Char, DType::int8},
    {ScalarType::Short, DType::int16},
    {ScalarType::Int, DType::int32},
    {ScalarType::Long, DType::int64},
    {ScalarType::UInt16, DType::uint16},
    {ScalarType::UInt32, DType::uint32},
    {ScalarType::UInt64, DType::uint64},
    {ScalarType::Half, DType::float16},
    {ScalarType::BFloat16, DType::bfloat16},
    {ScalarType::Float, DType::float32},
    {ScalarType::Double, DType::float64},
    {ScalarType::ComplexHalf, DType::complex32},
    {ScalarType::ComplexFloat, DType::complex64},
    {ScalarType::ComplexDouble, DType::complex128},
    {ScalarType::Bool, DType::boolean},
    {ScalarType::Float8_e4m3fn, DType::float8_e4m3fn},
    {ScalarType::Float8_e5m2, DType::float8_e5m2},
};

}  // namespace

std::optional<DType> dtype_of(ScalarType type) noexcept {
  for (const auto& pair : kTypes) {
    if (pair.scalar == type) return pair.dtype;
  }
  return std::nullopt;
}

ScalarType scalar_type_of(DType dtype) noexcept {
  for (const auto& pair : kTypes) {
    if (pair.dtype == dtype) return pair.scalar;
  }
  return ScalarType::Undefined;
}

std::string_view error_name(Error error) noexcept {
  const std::string_view text = executorch::runtime::to_string(error);
  constexpr std::string_view kPrefix = "Error::";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

Error to_error(Code code) noexcept {
  switch (code) {
    case Code::refused_option:
    case Code::invalid_argument:
      return Error::InvalidArgument;
    case Code::invalid_type:
      return Error::InvalidType;
    case Code::invalid_program:
      return Error::DelegateInvalidCompatibility;
    case Code::invalid_state:
      return Error::InvalidState;
    case Code::not_supported:
      return Error::NotSupported;
    case Code::not_found:
      return Error::NotFound;
    case Code::out_of_memory:
      return Error::MemoryAllocationFailed;
    case Code::io_error:
      return Error::AccessFailed;
    case Code::internal:
      break;
  }
  return Error::Internal;
}

Code to_code(Error error) noexcept {
  switch (error) {
    case Error::InvalidArgument:
      return Code::invalid_argument;
    case Error::InvalidType:
      return Code::invalid_type;
    case Error::InvalidProgram:
    case Error::InvalidExternalData:
    case Error::DelegateInvalidCompatibility:
      return Code::invalid_program;
    case Error::InvalidState:
      return Code::invalid_state;
    case Error::NotSupported:
    case Error::NotImplemented:
    case Error::OperatorMissing:
      return Code::not_supported;
    case Error::NotFound:
      return Code::not_found;
    case Error::MemoryAllocationFailed:
    case Error::DelegateMemoryAllocationFailed:
    case Error::OutOfResources:
      return Code::out_of_memory;
    case Error::AccessFailed:
      return Code::io_error;
    default:
      return Code::internal;
  }
}

}  // namespace torchtrt_viz::et
