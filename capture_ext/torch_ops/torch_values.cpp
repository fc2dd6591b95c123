#include "torch_ops/torch_values.hpp"

namespace torchtrt_viz::torch_ops {

std::string take_text(Slot& slot) {
  const auto string = take<TorchString>(slot);
  const char* data = nullptr;
  std::size_t size = 0;
  check(torch().torch_string_c_str(string.get(), &data), "reading a text");
  check(torch().torch_string_length(string.get(), &size), "reading a text");
  return {data, size};
}

Slot give_text(const std::string& text) {
  TorchString* made = nullptr;
  check(torch().torch_new_string_handle(text.data(), text.size(), &made), "making a text");
  return give(Owned<TorchString>(made));
}

std::vector<Owned<TorchTensor>> take_tensors(Slot& slot) {
  const auto list = take<TorchList>(slot);
  std::size_t size = 0;
  check(torch().torch_list_size(list.get(), &size), "reading a list");
  std::vector<Owned<TorchTensor>> tensors;
  tensors.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    Slot item = 0;
    check(torch().torch_list_get_item(list.get(), i, &item), "reading a list");
    tensors.push_back(take<TorchTensor>(item));
  }
  return tensors;
}

Slot give_tensors(std::vector<Owned<TorchTensor>> tensors) {
  TorchList* made = nullptr;
  check(torch().torch_new_list_reserve_size(tensors.size(), &made), "making a list");
  Owned<TorchList> list(made);
  for (auto& tensor : tensors) {
    check(torch().torch_list_push_back(list.get(), give(std::move(tensor))), "making a list");
  }
  return give(std::move(list));
}

}  // namespace torchtrt_viz::torch_ops
