// A tensor of the ExecuTorch runtime over somebody else's memory, without an allocation.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/tensor.hpp"
#include "host_engine/et_types.hpp"

namespace torchtrt_viz::et {

class BorrowedTensor {
 public:
  // `dim_order` as long as the view's rank; the memory is dense in that order.
  BorrowedTensor(const TensorView& view, std::span<const std::uint8_t> dim_order) {
    const auto rank = view.sizes.rank();
    for (std::size_t i = 0; i < rank; ++i) {
      sizes_[i] = static_cast<executorch::aten::SizesType>(view.sizes[i]);
      order_[i] = dim_order[i];
    }
    executorch::runtime::dim_order_to_stride_nocheck(sizes_.data(), order_.data(), rank, strides_.data());
    impl_.emplace(scalar_type_of(view.dtype), static_cast<ssize_t>(rank), sizes_.data(), view.data,
                  order_.data(), strides_.data(), executorch::aten::TensorShapeDynamism::DYNAMIC_BOUND);
  }
  BorrowedTensor(const BorrowedTensor&) = delete;
  BorrowedTensor& operator=(const BorrowedTensor&) = delete;

  // Valid while this object lives.
  executorch::runtime::EValue value() {
    return executorch::runtime::EValue(executorch::aten::Tensor(&*impl_));
  }

 private:
  std::array<executorch::aten::SizesType, kMaxDims> sizes_{};
  std::array<executorch::aten::DimOrderType, kMaxDims> order_{};
  std::array<executorch::aten::StridesType, kMaxDims> strides_{};
  std::optional<executorch::aten::TensorImpl> impl_;
};

}  // namespace torchtrt_viz::et
