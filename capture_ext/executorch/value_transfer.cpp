#include "executorch/value_transfer.hpp"

#include <array>
#include <cstring>
#include <new>
#include <span>
#include <string>

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

const char* tag_name(rt::Tag tag) {
  switch (tag) {
    case rt::Tag::None:
      return "none";
    case rt::Tag::Tensor:
      return "tensor";
    case rt::Tag::String:
      return "string";
    case rt::Tag::Double:
      return "double";
    case rt::Tag::Int:
      return "int";
    case rt::Tag::Bool:
      return "bool";
    case rt::Tag::ListBool:
      return "list_bool";
    case rt::Tag::ListDouble:
      return "list_double";
    case rt::Tag::ListInt:
      return "list_int";
    case rt::Tag::ListTensor:
      return "list_tensor";
    case rt::Tag::ListScalar:
      return "list_scalar";
    case rt::Tag::ListOptionalTensor:
      return "list_optional_tensor";
  }
  return "unknown";
}

// Whether elements lie one after another when the dimensions are walked in `order`. Strides of dimensions of
// size 1 mean nothing.
bool dense_in(const InputTensor& input, std::span<const std::uint8_t> order) {
  if (input.view.sizes.elements() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto d = order[i];
    if (input.view.sizes[d] == 1) continue;
    if (input.strides[d] != expected) return false;
    expected *= input.view.sizes[d];
  }
  return true;
}

// Copies the elements in `order`, the outermost dimension first.
void gather(const InputTensor& input, std::span<const std::uint8_t> order, std::byte* out) {
  const auto item = dtype_size(input.view.dtype);
  const auto rank = order.size();
  std::array<std::int64_t, kMaxDims> at{};
  const auto* data = static_cast<const std::byte*>(input.view.data);
  for (auto left = input.view.sizes.elements(); left > 0; --left) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < rank; ++i) offset += at[i] * input.strides[order[i]];
    std::memcpy(out, data + offset * static_cast<std::int64_t>(item), item);
    out += item;
    for (std::size_t i = rank; i-- > 0;) {
      if (++at[i] < input.view.sizes[order[i]]) break;
      at[i] = 0;
    }
  }
}

ValueMeta describe_value(const rt::Result<rt::Tag>& tag, const rt::Result<rt::TensorInfo>& info) {
  ValueMeta out;
  out.tag = tag.ok() ? tag_name(*tag) : "unknown";
  if (!tag.ok() || *tag != rt::Tag::Tensor || !info.ok()) return out;
  out.name = info->name();
  out.dtype = dtype_of(info->scalar_type());
  out.sizes.assign(info->sizes().begin(), info->sizes().end());
  out.dim_order.assign(info->dim_order().begin(), info->dim_order().end());
  out.nbytes = info->nbytes();
  return out;
}

}  // namespace

void InputTransfer::wrap(const rt::MethodMeta& meta, const std::vector<InputValue>& inputs) {
  if (inputs.size() != meta.num_inputs()) {
    throw Error(Code::invalid_argument, "it takes " + std::to_string(meta.num_inputs()) + " inputs, got " +
                                            std::to_string(inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto tag = meta.input_tag(i);
    const bool tensor = std::holds_alternative<InputTensor>(inputs[i]);
    if (!tag.ok()) throw Error(Code::invalid_program, "input " + std::to_string(i) + " has no type");
    if (tensor) {
      if (*tag != rt::Tag::Tensor) {
        throw Error(Code::invalid_type,
                    "input " + std::to_string(i) + " is a tensor, expected " + std::string(tag_name(*tag)));
      }
      wrap_tensor(meta, i, std::get<InputTensor>(inputs[i]));
    } else if (const auto* flag = std::get_if<bool>(&inputs[i]); flag != nullptr && *tag == rt::Tag::Bool) {
      values_.emplace_back(*flag);
    } else if (const auto* integer = std::get_if<std::int64_t>(&inputs[i]);
               integer != nullptr && *tag == rt::Tag::Int) {
      values_.emplace_back(*integer);
    } else if (integer != nullptr && *tag == rt::Tag::Double) {
      values_.emplace_back(static_cast<double>(*integer));
    } else if (const auto* real = std::get_if<double>(&inputs[i]);
               real != nullptr && *tag == rt::Tag::Double) {
      values_.emplace_back(*real);
    } else {
      throw Error(Code::invalid_type, "input " + std::to_string(i) + " is " +
                                          (flag != nullptr      ? "a bool"
                                           : integer != nullptr ? "an int"
                                                                : "a float") +
                                          ", expected " + std::string(tag_name(*tag)));
    }
  }
}

void InputTransfer::wrap_tensor(const rt::MethodMeta& meta, std::size_t i, const InputTensor& input) {
  const auto info = meta.input_tensor_meta(i);
  const std::string what = "input " + std::to_string(i);
  if (!info.ok()) throw Error(Code::invalid_program, what + " has no tensor description");
  const auto expected = dtype_of(info->scalar_type());
  if (expected != input.view.dtype) {
    throw Error(Code::invalid_type, what + " is " + std::string(dtype_name(input.view.dtype)) +
                                        ", expected " + std::string(expected ? dtype_name(*expected) : "?"));
  }
  if (info->sizes().size() != input.view.sizes.rank() || input.view.sizes.rank() > kMaxDims) {
    throw Error(Code::invalid_argument, what + " has shape " + to_text(input.view.sizes) +
                                            ", expected at most " + to_text(Dims(info->sizes())));
  }
  const std::span order(info->dim_order().data(), info->dim_order().size());
  TensorView view = input.view;
  if (!dense_in(input, order)) {
    copies_.emplace_back(new (std::nothrow) std::byte[view.nbytes()]);
    if (!copies_.back()) throw Error(Code::out_of_memory, "no memory for a copy of " + what);
    gather(input, order, copies_.back().get());
    view.data = copies_.back().get();
  }
  values_.push_back(tensors_.emplace_back(view, order).value());
}

OutputValue copy_output(const rt::EValue& value, std::size_t i) {
  switch (value.tag) {
    case rt::Tag::None:
      return std::monostate{};
    case rt::Tag::Int:
      return value.toInt();
    case rt::Tag::Double:
      return value.toDouble();
    case rt::Tag::Bool:
      return value.toBool();
    case rt::Tag::String: {
      const auto text = value.toString();
      return std::string(text.data(), text.size());
    }
    case rt::Tag::Tensor:
      break;
    default:
      throw Error(Code::not_supported, "output " + std::to_string(i) + " is a " + tag_name(value.tag) +
                                           ", which has no equivalent here");
  }
  const auto& tensor = value.toTensor();
  const auto dtype = dtype_of(tensor.scalar_type());
  if (!dtype)
    throw Error(Code::not_supported, "output " + std::to_string(i) + " has a type that numpy lacks");
  OutputTensor copy;
  copy.dtype = *dtype;
  copy.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  copy.strides.assign(tensor.strides().begin(), tensor.strides().end());
  const auto bytes = static_cast<std::size_t>(tensor.nbytes());
  copy.data.reset(new (std::nothrow) std::byte[bytes == 0 ? 1 : bytes]);
  if (!copy.data) throw Error(Code::out_of_memory, "no memory for output " + std::to_string(i));
  if (bytes != 0) {
    if (tensor.const_data_ptr() == nullptr) {
      throw Error(Code::internal, "output " + std::to_string(i) +
                                      " has no memory: the program was exported without planned outputs");
    }
    std::memcpy(copy.data.get(), tensor.const_data_ptr(), bytes);
  }
  return copy;
}

MethodDescription describe_method(const rt::MethodMeta& meta) {
  MethodDescription out;
  out.name = meta.name();
  for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
    out.inputs.push_back(describe_value(meta.input_tag(i), meta.input_tensor_meta(i)));
  }
  for (std::size_t i = 0; i < meta.num_outputs(); ++i) {
    out.outputs.push_back(describe_value(meta.output_tag(i), meta.output_tensor_meta(i)));
  }
  for (std::size_t i = 0; i < meta.num_backends(); ++i) {
    if (const auto name = meta.get_backend_name(i); name.ok()) out.backends.emplace_back(*name);
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // "experimental", and the only way to the number
  out.instructions = meta.num_instructions();
#pragma GCC diagnostic pop
  return out;
}

}  // namespace torchtrt_viz::et
