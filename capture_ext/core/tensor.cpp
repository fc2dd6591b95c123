#include "core/tensor.hpp"

namespace torchtrt_viz {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr Row kRows[] = {
    {DType::uint8, "uint8", 1},
    {DType::int8, "int8", 1},
    {DType::int16, "int16", 2},
    {DType::int32, "int32", 4},
    {DType::int64, "int64", 8},
    {DType::uint16, "uint16", 2},
    {DType::uint32, "uint32", 4},
    {DType::uint64, "uint64", 8},
    {DType::float16, "float16", 2},
    {DType::bfloat16, "bfloat16", 2},
    {DType::float32, "float32", 4},
    {DType::float64, "float64", 8},
    {DType::complex32, "complex32", 4},
    {DType::complex64, "complex64", 8},
    {DType::complex128, "complex128", 16},
    {DType::boolean, "bool", 1},
    {DType::float8_e4m3fn, "float8_e4m3fn", 1},
    {DType::float8_e5m2, "float8_e5m2", 1},
};

}  // namespace

std::string_view dtype_name(DType dtype) noexcept {
  for (const auto& row : kRows) {
    if (row.dtype == dtype) return row.name;
  }
  return "unknown";
}

std::optional<DType> parse_dtype(std::string_view name) noexcept {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const auto& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::size_t dtype_size(DType dtype) noexcept {
  for (const auto& row : kRows) {
    if (row.dtype == dtype) return row.size;
  }
  return 0;
}

std::string to_text(const Dims& dims) {
  std::string out = "(";
  for (std::size_t i = 0; i < dims.rank(); ++i) {
    if (i != 0) out += ", ";
    out += std::to_string(dims[i]);
  }
  return out + (dims.rank() == 1 ? ",)" : ")");
}

}  // namespace torchtrt_viz
