// Operators registered with torch, for as long as their library's object lives.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "core/error.hpp"
#include "torch_ops/torch_values.hpp"

namespace torchtrt_viz::torch_ops {

// A function of a stack as torch calls it. Failures leave as exceptions of std, since torch knows no others
// of ours: in Python a value that cannot be is a ValueError, or a RuntimeError where torch makes one of
// everything; anything else is a RuntimeError.
template <auto work>
void kernel(Slot* stack, std::uint64_t /*arguments*/, std::uint64_t /*results*/) {
  try {
    work(stack);
  } catch (const Error& failure) {
    const auto code = failure.code();
    if (code == Code::refused_option || code == Code::invalid_program) {
      throw std::invalid_argument(failure.what());
    }
    throw std::runtime_error(failure.what());
  }
}

// What torch names as the place of a registration.
inline constexpr char kSource[] = "torchtrt_viz/torch_ops/torch_library.hpp";

// Definitions and kernels for any dispatch key.
inline Owned<TorchLibrary> library_fragment(const char* ns) {
  TorchLibrary* made = nullptr;
  check(torch().aoti_torch_library_init_fragment(ns, kSource, __LINE__, &made), "making a library");
  return Owned<TorchLibrary>(made);
}

// Kernels for one dispatch key, of operators that are defined or may be later.
inline Owned<TorchLibrary> library_for_key(const char* ns, const char* key) {
  TorchLibrary* made = nullptr;
  check(torch().aoti_torch_library_init_impl(ns, key, kSource, __LINE__, &made), "making a library");
  return Owned<TorchLibrary>(made);
}

// An operator whose kernel serves every dispatch key.
struct Operator {
  const char* name;
  const char* schema;
  Kernel function;
};

inline void add_kernel(const Owned<TorchLibrary>& library, const char* name, Kernel function) {
  check(torch().torch_library_impl(library.get(), name, function, kInterface), name);
}

}  // namespace torchtrt_viz::torch_ops
