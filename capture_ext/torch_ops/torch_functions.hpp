// torch's C functions that the operators call, found in the torch that the process has loaded.
//
// They are torch's stable interface since 2.10: declared here as torch declares them, so that nothing of
// torch is included or linked and one build serves every later release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace torchtrt_viz::torch_ops {

// Objects of torch, reached through pointers only.
struct TorchTensor;
struct TorchLibrary;
struct TorchList;
struct TorchString;

using TorchError = std::int32_t;  // 0: success
using Slot = std::uint64_t;       // an argument or a result: a small value, or a pointer to what it owns
// Takes its arguments out of the stack and leaves its results there; called by torch's C++ code, which hands
// on what it throws.
using Kernel = void (*)(Slot* stack, std::uint64_t arguments, std::uint64_t results);

// The release whose rules slots follow, whichever is loaded.
inline constexpr std::uint64_t kInterface = (std::uint64_t{2} << 56U) | (std::uint64_t{10} << 48U);

// X(result, name, parameters...)
#define TORCHTRT_VIZ_TORCH_FUNCTIONS(X)                                                                   \
  X(TorchError, aoti_torch_library_init_fragment, const char* ns, const char* file, std::uint32_t line,   \
    TorchLibrary** made)                                                                                  \
  X(TorchError, aoti_torch_library_init_impl, const char* ns, const char* key, const char* file,          \
    std::uint32_t line, TorchLibrary** made)                                                              \
  X(TorchError, aoti_torch_library_def, TorchLibrary* library, const char* schema)                        \
  X(TorchError, torch_library_impl, TorchLibrary* library, const char* name, Kernel kernel,               \
    std::uint64_t interface)                                                                              \
  X(TorchError, aoti_torch_delete_library_object, TorchLibrary* library)                                  \
  X(TorchError, torch_call_dispatcher, const char* name, const char* overload, Slot* stack,               \
    std::uint64_t interface)                                                                              \
  X(TorchError, torch_list_size, TorchList* list, std::size_t* size)                                      \
  X(TorchError, torch_list_get_item, TorchList* list, std::size_t index, Slot* item)                      \
  X(TorchError, torch_new_list_reserve_size, std::size_t size, TorchList** made)                          \
  X(TorchError, torch_list_push_back, TorchList* list, Slot item)                                         \
  X(TorchError, torch_delete_list, TorchList* list)                                                       \
  X(TorchError, torch_new_string_handle, const char* data, std::size_t size, TorchString** made)          \
  X(TorchError, torch_string_length, TorchString* string, std::size_t* size)                              \
  X(TorchError, torch_string_c_str, TorchString* string, const char** data)                               \
  X(TorchError, torch_delete_string, TorchString* string)                                                 \
  X(TorchError, aoti_torch_get_data_ptr, TorchTensor* tensor, void** data)                                \
  X(TorchError, torch_get_const_data_ptr, TorchTensor* tensor, const void** data)                         \
  X(TorchError, aoti_torch_get_dim, TorchTensor* tensor, std::int64_t* dimensions)                        \
  X(TorchError, aoti_torch_get_numel, TorchTensor* tensor, std::int64_t* elements)                        \
  X(TorchError, aoti_torch_get_sizes, TorchTensor* tensor, std::int64_t** sizes)                          \
  X(TorchError, aoti_torch_get_dtype, TorchTensor* tensor, std::int32_t* dtype)                           \
  X(TorchError, aoti_torch_get_device_type, TorchTensor* tensor, std::int32_t* type)                      \
  X(TorchError, aoti_torch_get_device_index, TorchTensor* tensor, std::int32_t* index)                    \
  X(TorchError, aoti_torch_is_contiguous, TorchTensor* tensor, bool* contiguous)                          \
  X(TorchError, aoti_torch_empty_strided, std::int64_t rank, const std::int64_t* sizes,                   \
    const std::int64_t* strides, std::int32_t dtype, std::int32_t device_type, std::int32_t device_index, \
    TorchTensor** made)                                                                                   \
  X(TorchError, aoti_torch__reinterpret_tensor, TorchTensor* tensor, std::int64_t rank,                   \
    const std::int64_t* sizes, const std::int64_t* strides, std::int64_t offset, TorchTensor** made)      \
  X(TorchError, aoti_torch_delete_tensor_object, TorchTensor* tensor)                                     \
  X(std::int32_t, aoti_torch_memory_format_contiguous_format)                                             \
  X(std::int32_t, aoti_torch_device_type_cpu)                                                             \
  X(std::int32_t, aoti_torch_device_type_cuda)                                                            \
  X(std::int32_t, aoti_torch_dtype_uint8)                                                                 \
  X(std::int32_t, aoti_torch_dtype_int8)                                                                  \
  X(std::int32_t, aoti_torch_dtype_int16)                                                                 \
  X(std::int32_t, aoti_torch_dtype_int32)                                                                 \
  X(std::int32_t, aoti_torch_dtype_int64)                                                                 \
  X(std::int32_t, aoti_torch_dtype_uint16)                                                                \
  X(std::int32_t, aoti_torch_dtype_uint32)                                                                \
  X(std::int32_t, aoti_torch_dtype_uint64)                                                                \
  X(std::int32_t, aoti_torch_dtype_float16)                                                               \
  X(std::int32_t, aoti_torch_dtype_bfloat16)                                                              \
  X(std::int32_t, aoti_torch_dtype_float32)                                                               \
  X(std::int32_t, aoti_torch_dtype_float64)                                                               \
  X(std::int32_t, aoti_torch_dtype_complex32)                                                             \
  X(std::int32_t, aoti_torch_dtype_complex64)                                                             \
  X(std::int32_t, aoti_torch_dtype_complex128)                                                            \
  X(std::int32_t, aoti_torch_dtype_bool)                                                                  \
  X(std::int32_t, aoti_torch_dtype_float8_e4m3fn)                                                         \
  X(std::int32_t, aoti_torch_dtype_float8_e5m2)

struct TorchFunctions {
#define TORCHTRT_VIZ_MEMBER(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
  // NOLINTNEXTLINE(bugprone-reserved-identifier): one of torch's names has two underscores
  TORCHTRT_VIZ_TORCH_FUNCTIONS(TORCHTRT_VIZ_MEMBER)
#undef TORCHTRT_VIZ_MEMBER
  // The thread's latest failure in words: torch 2.13 and later, null before.
  const char* (*torch_exception_get_what_without_backtrace)() = nullptr;
};

using Lookup = std::function<void*(const char* name)>;

// Fills in what `lookup` finds; the names of what it does not find.
std::vector<std::string> resolve(const Lookup& lookup, TorchFunctions& functions);

// What is wrong with a torch that lacks some of them. `version` is its own number, 0 where it tells none.
std::string lacking(std::string_view library, std::uint64_t version, const std::vector<std::string>& missing);

// Why the functions cannot be called; empty: they can. Looks again where torch was not loaded before.
std::string find_torch();

// Once find_torch() has found them.
const TorchFunctions& torch() noexcept;

// A function of torch's library for CUDA devices; null where none is loaded, or it has no such function.
void* find_cuda_function(const char* name) noexcept;

// Throws when a call of torch has failed: what torch says, or what was being done.
void check(TorchError error, const char* doing);

}  // namespace torchtrt_viz::torch_ops
