// Tensors as an engine sees them: a pointer, a type, a shape. No runtime's tensor class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

enum class DType : std::uint8_t {
  uint8,
  int8,
  int16,
  int32,
  int64,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex32,
  complex64,
  complex128,
  boolean,
  float8_e4m3fn,
  float8_e5m2,
};

// As numpy writes it; "bfloat16", "complex32" and "float8_*" as torch does.
TORCHTRT_VIZ_API std::string_view dtype_name(DType dtype) noexcept;
TORCHTRT_VIZ_API std::optional<DType> parse_dtype(std::string_view name) noexcept;
TORCHTRT_VIZ_API std::size_t dtype_size(DType dtype) noexcept;

inline constexpr std::size_t kMaxDims = 16;

// A shape without an allocation.
class Dims {
 public:
  Dims() = default;
  template <typename Range>
  explicit Dims(const Range& range) {
    for (const auto d : range) push_back(static_cast<std::int64_t>(d));
  }
  void push_back(std::int64_t d) noexcept {
    if (rank_ < kMaxDims) sizes_[rank_++] = d;
  }
  std::size_t rank() const noexcept { return rank_; }
  std::span<const std::int64_t> sizes() const noexcept { return {sizes_.data(), rank_}; }
  std::int64_t operator[](std::size_t i) const noexcept { return sizes_[i]; }
  std::int64_t elements() const noexcept {
    std::int64_t n = 1;
    for (const auto d : sizes()) n *= d;
    return n;
  }
  bool operator==(const Dims& other) const noexcept {
    if (rank_ != other.rank_) return false;
    for (std::size_t i = 0; i < rank_; ++i) {
      if (sizes_[i] != other.sizes_[i]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, kMaxDims> sizes_{};
  std::size_t rank_ = 0;
};

TORCHTRT_VIZ_API std::string to_text(const Dims& dims);  // "(1, 3, 224, 224)"

enum class DeviceKind : std::uint8_t { host, cuda };

// An input of one call. The memory belongs to the caller.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::float32;
  DeviceKind device = DeviceKind::host;
  Dims sizes;
  // Dimensions from the outermost in memory to the innermost; null: as written, that is contiguous.
  const std::uint8_t* dim_order = nullptr;

  std::size_t nbytes() const noexcept {
    return static_cast<std::size_t>(sizes.elements()) * dtype_size(dtype);
  }
};

// An output of one call: memory of the caller, or none yet.
struct OutputView : TensorView {
  std::size_t capacity = 0;  // bytes at `data`
  // Give the output these sizes: changes `sizes`, and for callers that allocate on demand `data` and
  // `capacity`. Throws where the caller's memory cannot hold them.
  void (*resize)(OutputView& self, const Dims& sizes) = nullptr;
  void* owner = nullptr;  // for `resize`
};

}  // namespace torchtrt_viz
