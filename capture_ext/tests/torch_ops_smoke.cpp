// The torch operators in a native program, with any libtorch: no header of torch, nothing linked.
//
//   torch_ops_smoke LIBTORCH_CPU.so OPERATORS.so [BLOB]
//
// Loads the operators before torch and after, uses the switch, and runs the engine in BLOB, which takes a
// float matrix of two rows and four columns: 0, 1, ... 7. Prints the first output; exit status 0 when all is
// as it should be.
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "torch_ops/torch_values.hpp"

namespace {

using namespace torchtrt_viz::torch_ops;
using torchtrt_viz::Code;
using torchtrt_viz::Error;

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(Code::internal, what);
}

void* open(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char* const reason = library == nullptr ? dlerror() : nullptr;
  require(library != nullptr, reason == nullptr ? path : reason);
  return library;
}

// Calls an operator; whether it succeeded.
bool call(const char* name, Slot* stack) {
  return torch().torch_call_dispatcher(name, "", stack, kInterface) == 0;
}

Slot answer_of(const char* name) {
  std::array<Slot, 1> stack{};
  require(call(name, stack.data()), std::string(name) + " fails");
  return stack[0];
}

bool set_text(const char* name, const std::string& text) {
  std::array<Slot, 1> stack{give_text(text)};
  return call(name, stack.data());
}

std::string text_of(const char* name) {
  Slot slot = answer_of(name);
  return take_text(slot);
}

Owned<TorchTensor> make_tensor(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                               std::int32_t dtype, void** data) {
  TorchTensor* made = nullptr;
  check(
      torch().aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(),
                                       dtype, torch().aoti_torch_device_type_cpu(), 0, &made),
      "making a tensor");
  Owned<TorchTensor> tensor(made);
  check(torch().aoti_torch_get_data_ptr(tensor.get(), data), "reading a tensor");
  return tensor;
}

Owned<TorchTensor> input() {
  constexpr std::array<std::int64_t, 2> kSizes{2, 4};
  constexpr std::array<std::int64_t, 2> kStrides{1, 2};  // not contiguous: the operator makes it so
  void* data = nullptr;
  auto tensor = make_tensor(kSizes, kStrides, torch().aoti_torch_dtype_float32(), &data);
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 4; ++column) {
      static_cast<float*>(data)[row + 2 * column] = static_cast<float>(4 * row + column);
    }
  }
  return tensor;
}

Owned<TorchTensor> blob_tensor(const std::vector<char>& bytes) {
  const std::array<std::int64_t, 1> sizes{static_cast<std::int64_t>(bytes.size())};
  constexpr std::array<std::int64_t, 1> kStrides{1};
  void* data = nullptr;
  auto tensor = make_tensor(sizes, kStrides, torch().aoti_torch_dtype_uint8(), &data);
  for (std::size_t i = 0; i < bytes.size(); ++i) static_cast<char*>(data)[i] = bytes[i];
  return tensor;
}

bool execute(Owned<TorchTensor> blob, std::vector<Owned<TorchTensor>>& outputs) {
  std::vector<Owned<TorchTensor>> inputs;
  inputs.push_back(input());
  std::array<Slot, 3> stack{give_tensors(std::move(inputs)), give(std::move(blob)), give_text("smoke")};
  if (!call("torchtrt_viz::execute_engine", stack.data())) return false;
  outputs = take_tensors(stack[0]);
  return true;
}

void use_the_switch() {
  require(value_in<bool>(answer_of("torchtrt_viz::profile_ops_are_ours")), "the operators are not ours");
  require(set_text("tensorrt::set_profile_path_prefix", "a prefix"), "a prefix is refused");
  require(text_of("tensorrt::get_profile_path_prefix") == "a prefix", "the prefix is lost");
  require(set_text("tensorrt::set_profile_format", "trex"), "trex is refused");
  require(!set_text("tensorrt::set_profile_format", "json"), "json is taken");
  require(!set_text("tensorrt::set_profile_path_prefix", ""), "an empty prefix is taken");
  require(text_of("tensorrt::get_profile_format") == "trex", "the format is lost");
  std::array<Slot, 1> on{slot_of(true)};
  require(call("tensorrt::set_profile_execution", on.data()), "the switch cannot be set");
  require(value_in<bool>(answer_of("tensorrt::get_profile_execution")), "the switch is off");
  std::array<Slot, 1> off{slot_of(false)};
  require(call("tensorrt::set_profile_execution", off.data()), "the switch cannot be set");
}

void step_aside(void* operators) {
  const auto withdraw = reinterpret_cast<int (*)()>(dlsym(operators, "torchtrt_viz_withdraw_profile_ops"));
  require(withdraw != nullptr && withdraw() == 1 && withdraw() == 0, "the operators are not withdrawn");
  std::array<Slot, 1> stack{};
  require(!call("tensorrt::get_profile_execution", stack.data()), "a withdrawn operator answers");
  require(value_in<bool>(answer_of("torchtrt_viz::define_profile_ops")), "the operators do not come back");
  require(text_of("tensorrt::get_profile_format") == "trex", "the settings are lost");
}

void run_engine(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<Owned<TorchTensor>> outputs;
  require(!execute(blob_tensor({'T', 'R'}), outputs), "a damaged blob runs");
  require(!execute(input(), outputs), "a blob of floats runs");
  require(execute(blob_tensor(bytes), outputs), "the engine does not run");
  require(outputs.size() == 1, "the engine has not one output");
  void* data = nullptr;
  std::int64_t elements = 0;
  check(torch().aoti_torch_get_data_ptr(outputs[0].get(), &data), "reading the output");
  check(torch().aoti_torch_get_numel(outputs[0].get(), &elements), "reading the output");
  for (std::int64_t i = 0; i < elements; ++i) std::printf("%g ", static_cast<const float*>(data)[i]);
  std::printf("\n");
  require(value_in<std::int64_t>(answer_of("torchtrt_viz::release_engines")) == 1, "not one engine was kept");
}

void run(std::span<char*> arguments) {
  require(arguments.size() >= 3, "usage: torch_ops_smoke LIBTORCH_CPU.so OPERATORS.so [BLOB]");
  void* const operators = open(arguments[2]);
  const auto error = reinterpret_cast<const char* (*)()>(dlsym(operators, "torchtrt_viz_torch_ops_error"));
  require(error != nullptr, "the library does not say what it lacks");
  const char* why = error();
  require(why != nullptr && std::string(why).find("no torch is loaded") != std::string::npos,
          "without torch the library does not say so");
  open(arguments[1]);
  why = error();
  require(why == nullptr, why == nullptr ? "" : why);
  const auto missing = find_torch();
  require(missing.empty(), missing);
  use_the_switch();
  step_aside(operators);
  if (arguments.size() > 3) run_engine(arguments[3]);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run({arguments, static_cast<std::size_t>(count)});
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  return 0;
}
