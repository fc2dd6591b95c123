// TensorRT's types as ours.
#pragma once

#include <NvInfer.h>

#include <optional>

#include "core/tensor.hpp"

namespace torchtrt_viz {

// Nothing for types narrower than a byte, which no caller's tensor can have.
inline std::optional<DType> from_tensorrt(nvinfer1::DataType type) noexcept {
  switch (type) {
    case nvinfer1::DataType::kFLOAT:
      return DType::float32;
    case nvinfer1::DataType::kHALF:
      return DType::float16;
    case nvinfer1::DataType::kBF16:
      return DType::bfloat16;
    case nvinfer1::DataType::kINT8:
      return DType::int8;
    case nvinfer1::DataType::kUINT8:
      return DType::uint8;
    case nvinfer1::DataType::kINT32:
      return DType::int32;
    case nvinfer1::DataType::kINT64:
      return DType::int64;
    case nvinfer1::DataType::kBOOL:
      return DType::boolean;
    case nvinfer1::DataType::kFP8:
      return DType::float8_e4m3fn;
    default:
      return std::nullopt;
  }
}

}  // namespace torchtrt_viz
