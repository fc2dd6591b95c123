// torch's objects as owners of C++, and what stands in the slots of an operator's stack.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "torch_ops/torch_functions.hpp"

namespace torchtrt_viz::torch_ops {

struct Release {
  void operator()(TorchTensor* object) const { torch().aoti_torch_delete_tensor_object(object); }
  void operator()(TorchLibrary* object) const { torch().aoti_torch_delete_library_object(object); }
  void operator()(TorchList* object) const { torch().torch_delete_list(object); }
  void operator()(TorchString* object) const { torch().torch_delete_string(object); }
};

template <typename T>
using Owned = std::unique_ptr<T, Release>;

// Numbers and truth values lie in the first bytes of a slot.
template <typename T>
Slot slot_of(T value) {
  static_assert(sizeof(T) <= sizeof(Slot));
  Slot slot = 0;
  std::memcpy(&slot, &value, sizeof value);
  return slot;
}

template <typename T>
T value_in(Slot slot) {
  static_assert(sizeof(T) <= sizeof(Slot));
  T value{};
  std::memcpy(&value, &slot, sizeof value);
  return value;
}

// An argument belongs to the kernel, a result to torch.
template <typename T>
Owned<T> take(Slot& slot) {
  return Owned<T>(reinterpret_cast<T*>(std::exchange(slot, 0)));
}

template <typename T>
Slot give(Owned<T> object) {
  return reinterpret_cast<Slot>(object.release());
}

std::string take_text(Slot& slot);
Slot give_text(const std::string& text);
std::vector<Owned<TorchTensor>> take_tensors(Slot& slot);
Slot give_tensors(std::vector<Owned<TorchTensor>> tensors);

}  // namespace torchtrt_viz::torch_ops
