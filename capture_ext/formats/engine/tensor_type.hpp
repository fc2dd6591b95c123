// Element types and sizes of tensors, from the many ways in which TensorRT writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace torchtrt_viz::engine {

struct ElementType {
  std::string_view name;  // "FP16", empty: unknown
  unsigned bits = 0;

  [[nodiscard]] bool known() const { return bits != 0; }
};

// The type that a format or type description names: "Thirty-two wide channel vectorized row major Int8
// format." names INT8, "N/A due to dynamic shapes" none. Only the beginning of a long text is looked at.
ElementType element_type(std::string_view text);

// Every type with its size, for documentation and tests.
std::span<const ElementType> element_types();

// Bytes of the elements; nullopt when a dimension or the type is unknown, or the size does not fit. Elements
// of four bits are packed two to a byte; the padding of vectorised layouts is not recorded and not counted.
std::optional<std::int64_t> tensor_bytes(std::span<const std::int64_t> shape, ElementType type);

// 1x3x224x224; a tensor without dimensions is "scalar".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace torchtrt_viz::engine
