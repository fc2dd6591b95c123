#include "host_engine/et_types.hpp"

namespace torchtrt_viz::et {

namespace {

using executorch::aten::ScalarType;
namespace rt = executorch::runtime;

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

std::string_view error_name(rt::Error error) noexcept {
  const std::string_view text = rt::to_string(error);
  constexpr std::string_view kPrefix = "Error::";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

rt::Error to_error(Code code) noexcept {
  switch (code) {
    case Code::refused_option:
    case Code::invalid_argument:
      return rt::Error::InvalidArgument;
    case Code::invalid_type:
      return rt::Error::InvalidType;
    case Code::invalid_program:
      return rt::Error::DelegateInvalidCompatibility;
    case Code::invalid_state:
      return rt::Error::InvalidState;
    case Code::not_supported:
      return rt::Error::NotSupported;
    case Code::not_found:
      return rt::Error::NotFound;
    case Code::out_of_memory:
      return rt::Error::MemoryAllocationFailed;
    case Code::io_error:
      return rt::Error::AccessFailed;
    case Code::internal:
      break;
  }
  return rt::Error::Internal;
}

Code to_code(rt::Error error) noexcept {
  switch (error) {
    case rt::Error::InvalidArgument:
      return Code::invalid_argument;
    case rt::Error::InvalidType:
      return Code::invalid_type;
    case rt::Error::InvalidProgram:
    case rt::Error::InvalidExternalData:
    case rt::Error::DelegateInvalidCompatibility:
      return Code::invalid_program;
    case rt::Error::InvalidState:
      return Code::invalid_state;
    case rt::Error::NotSupported:
    case rt::Error::NotImplemented:
    case rt::Error::OperatorMissing:
      return Code::not_supported;
    case rt::Error::NotFound:
      return Code::not_found;
    case rt::Error::MemoryAllocationFailed:
    case rt::Error::DelegateMemoryAllocationFailed:
    case rt::Error::OutOfResources:
      return Code::out_of_memory;
    case rt::Error::AccessFailed:
      return Code::io_error;
    default:
      return Code::internal;
  }
}

}  // namespace torchtrt_viz::et
