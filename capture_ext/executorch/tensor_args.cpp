#include "executorch/tensor_args.hpp"

#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <array>
#include <string>

#include "host_engine/et_types.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;
using executorch::aten::SizesType;

void resize(OutputView& view, const Dims& sizes) {
  if (sizes == view.sizes) return;
  auto& tensor = static_cast<rt::EValue*>(view.owner)->toTensor();
  std::array<SizesType, kMaxDims> wanted{};
  for (std::size_t i = 0; i < sizes.rank(); ++i) wanted[i] = static_cast<SizesType>(sizes[i]);
  const auto error = rt::resize_tensor(tensor, rt::ArrayRef<SizesType>(wanted.data(), sizes.rank()));
  if (error != rt::Error::Ok) {
    throw Error(to_code(error), "an output of shape " + to_text(view.sizes) + " cannot become " +
                                    to_text(sizes) + ": executorch says " + std::string(error_name(error)));
  }
  view.sizes = sizes;
  view.data = tensor.mutable_data_ptr();
  view.capacity = tensor.nbytes();
}

}  // namespace

void TensorArgs::wrap_value(rt::EValue& value, std::size_t i, TensorView& view) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    const auto dtype = dtype_of(tensor.scalar_type());
    if (!dtype) throw Error(Code::invalid_type, "argument " + std::to_string(i) + " has an unknown type");
    view.data = tensor.mutable_data_ptr();
    view.dtype = *dtype;
    view.sizes = Dims(tensor.sizes());
    view.dim_order = tensor.dim_order().data();
    if (tensor.device_type() == rt::etensor::DeviceType::CUDA) view.device = DeviceKind::cuda;
    return;
  }
  auto& number = numbers_[i];
  view.data = &number;
  if (value.isInt()) {
    view.dtype = DType::int64;
    number.integer = value.toInt();
  } else if (value.isDouble()) {
    view.dtype = DType::float64;
    number.real = value.toDouble();
  } else if (value.isBool()) {
    view.dtype = DType::boolean;
    number.boolean = value.toBool();
  } else {
    throw Error(Code::invalid_type, "argument " + std::to_string(i) + " is neither a tensor nor a number");
  }
}

void TensorArgs::wrap(rt::Span<rt::EValue*> args, std::size_t inputs, std::size_t outputs) {
  if (args.size() != inputs + outputs) {
    throw Error(Code::invalid_argument, "the delegate was called with " + std::to_string(args.size()) +
                                            " arguments, its engine has " + std::to_string(inputs) +
                                            " inputs and " + std::to_string(outputs) + " outputs");
  }
  args_ = args;
  inputs_.resize(inputs);
  outputs_.resize(outputs);
  numbers_.resize(args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    TensorView& view = i < inputs ? inputs_[i] : outputs_[i - inputs];
    wrap_value(*args[i], i, view);
    if (i < inputs) continue;
    auto& output = outputs_[i - inputs];
    if (args[i]->isTensor()) {
      output.capacity = output.nbytes();
      output.owner = args[i];
      output.resize = resize;
    } else {
      output.capacity = sizeof(Number);
    }
  }
}

void TensorArgs::unwrap() {
  const auto inputs = inputs_.size();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    auto& value = *args_[inputs + i];
    const auto& number = numbers_[inputs + i];
    if (value.isInt()) {
      value = rt::EValue(number.integer);
    } else if (value.isDouble()) {
      value = rt::EValue(number.real);
    } else if (value.isBool()) {
      value = rt::EValue(number.boolean);
    }
  }
}

}  // namespace torchtrt_viz::et
