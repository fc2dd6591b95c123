// torch.ops.torchtrt_viz.execute_engine: an engine as an operator, for AOTInductor packages.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/instrumented_engine.hpp"
#include "executorch/loaded_engine.hpp"
#include "torch_ops/operators.hpp"
#include "torch_ops/torch_library.hpp"

namespace torchtrt_viz::torch_ops {
namespace {

struct Pair {
  std::int32_t (*TorchFunctions::*torch_dtype)();
  DType dtype;
};

constexpr Pair kTypes[] = {
    {&TorchFunctions::aoti_torch_dtype_uint8, DType::uint8},
    {&TorchFunctions::aoti_torch_dtype_int8, DType::int8},
    {&TorchFunctions::aoti_torch_dtype_int16, DType::int16},
    {&TorchFunctions::aoti_torch_dtype_int32, DType::int32},
    {&TorchFunctions::aoti_torch_dtype_int64, DType::int64},
    {&TorchFunctions::aoti_torch_dtype_uint16, DType::uint16},
    {&TorchFunctions::aoti_torch_dtype_uint32, DType::uint32},
    {&TorchFunctions::aoti_torch_dtype_uint64, DType::uint64},
    {&TorchFunctions::aoti_torch_dtype_float16, DType::float16},
    {&TorchFunctions::aoti_torch_dtype_bfloat16, DType::bfloat16},
    {&TorchFunctions::aoti_torch_dtype_float32, DType::float32},
    {&TorchFunctions::aoti_torch_dtype_float64, DType::float64},
    {&TorchFunctions::aoti_torch_dtype_complex32, DType::complex32},
    {&TorchFunctions::aoti_torch_dtype_complex64, DType::complex64},
    {&TorchFunctions::aoti_torch_dtype_complex128, DType::complex128},
    {&TorchFunctions::aoti_torch_dtype_bool, DType::boolean},
    {&TorchFunctions::aoti_torch_dtype_float8_e4m3fn, DType::float8_e4m3fn},
    {&TorchFunctions::aoti_torch_dtype_float8_e5m2, DType::float8_e5m2},
};

DType dtype_of(std::int32_t code, std::size_t i) {
  for (const auto& pair : kTypes) {
    if ((torch().*pair.torch_dtype)() == code) return pair.dtype;
  }
  throw std::invalid_argument("input " + std::to_string(i) + " of the engine has a type (number " +
                              std::to_string(code) + " of torch's) that engines do not take");
}

std::int32_t code_of(DType dtype) {
  for (const auto& pair : kTypes) {
    if (pair.dtype == dtype) return (torch().*pair.torch_dtype)();
  }
  throw std::invalid_argument("an output of the engine has type " + std::string(dtype_name(dtype)) +
                              ", which torch lacks");
}

// One of the functions that read a property of a tensor.
template <typename T>
T ask(TorchError (*function)(TorchTensor*, T*), const Owned<TorchTensor>& tensor) {
  T answer{};
  check(function(tensor.get(), &answer), "reading a tensor");
  return answer;
}

Dims sizes_of(const Owned<TorchTensor>& tensor) {
  const auto rank = ask(torch().aoti_torch_get_dim, tensor);
  const auto* const sizes = ask(torch().aoti_torch_get_sizes, tensor);
  return Dims(std::span(sizes, static_cast<std::size_t>(rank)));
}

Owned<TorchTensor> contiguous(Owned<TorchTensor> tensor) {
  if (ask(torch().aoti_torch_is_contiguous, tensor)) return tensor;
  std::array<Slot, 2> stack{give(std::move(tensor)),
                            slot_of(torch().aoti_torch_memory_format_contiguous_format())};
  check(torch().torch_call_dispatcher("aten::contiguous", "", stack.data(), kInterface),
        "making an input contiguous");
  return take<TorchTensor>(stack[0]);
}

// Engines by name and by where their blob lies. A package's constants stay where they are while it is loaded;
// the content is compared too, because another package's may come to lie at a place that was given up.
struct Engines {
  std::shared_mutex mutex;
  std::map<std::pair<std::string, const void*>, std::shared_ptr<LoadedEngine>> all;
};

// Never destroyed: packages may be called until the process ends.
Engines& engines() {
  static Engines* const instance = new Engines;  // NOLINT
  return *instance;
}

constexpr std::size_t kCompared = 512;

// Headers hold sizes, and metadata follows them; the whole blob may have gigabytes.
bool same_content(const LoadedEngine& loaded, std::span<const std::byte> blob) {
  if (loaded.bytes.size() != blob.size()) return false;
  const auto head = std::min(blob.size(), kCompared);
  return std::memcmp(loaded.bytes.data(), blob.data(), head) == 0 &&
         std::memcmp(loaded.bytes.data() + blob.size() - head, blob.data() + blob.size() - head, head) == 0;
}

std::shared_ptr<LoadedEngine> load(std::span<const std::byte> bytes, const std::string& name) {
  InstrumentedEngine::Options options;
  options.sidecars = SidecarKind::package;
  return std::make_shared<LoadedEngine>(load_engine(bytes, name, "torch", std::move(options)));
}

std::shared_ptr<LoadedEngine> find(const Owned<TorchTensor>& tensor, const std::string& name) {
  if (ask(torch().aoti_torch_get_dtype, tensor) != torch().aoti_torch_dtype_uint8() ||
      ask(torch().aoti_torch_get_device_type, tensor) != torch().aoti_torch_device_type_cpu() ||
      !ask(torch().aoti_torch_is_contiguous, tensor)) {
    throw std::invalid_argument("engine '" + name +
                                "' is a contiguous uint8 tensor in host memory: a TR01 or TR02 blob");
  }
  const void* const data = ask(torch().torch_get_const_data_ptr, tensor);
  const std::span bytes(static_cast<const std::byte*>(data),
                        static_cast<std::size_t>(ask(torch().aoti_torch_get_numel, tensor)));
  const std::pair key(name, data);
  auto& known = engines();
  {
    const std::shared_lock lock(known.mutex);
    const auto found = known.all.find(key);
    if (found != known.all.end() && same_content(*found->second, bytes)) return found->second;
  }
  const std::unique_lock lock(known.mutex);
  const auto found = known.all.find(key);
  if (found != known.all.end() && same_content(*found->second, bytes)) return found->second;
  auto loaded = load(bytes, name);
  known.all.insert_or_assign(key, loaded);
  return loaded;
}

struct Output {
  Owned<TorchTensor> tensor;
  std::int32_t dtype = 0;
  std::int32_t device_type = 0;
  std::int32_t device_index = 0;
};

Dims contiguous_strides(const Dims& sizes) {
  std::array<std::int64_t, kMaxDims> strides{};
  std::int64_t step = 1;
  for (auto i = sizes.rank(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(sizes[i], 1);
  }
  return Dims(std::span(strides.data(), sizes.rank()));
}

// The output is made when its sizes are known, and made again where they change.
void allocate(OutputView& view, const Dims& sizes) {
  auto& output = *static_cast<Output*>(view.owner);
  if (!output.tensor || !(sizes == view.sizes)) {
    const auto bytes = static_cast<std::size_t>(sizes.elements()) * dtype_size(view.dtype);
    const auto strides = contiguous_strides(sizes);
    const auto rank = static_cast<std::int64_t>(sizes.rank());
    TorchTensor* made = nullptr;
    if (output.tensor && bytes <= view.capacity) {
      // What the engine has written there stays: the beginning of it is the output.
      check(torch().aoti_torch__reinterpret_tensor(output.tensor.get(), rank, sizes.sizes().data(),
                                                   strides.sizes().data(), 0, &made),
            "making an output smaller");
    } else {
      check(torch().aoti_torch_empty_strided(rank, sizes.sizes().data(), strides.sizes().data(), output.dtype,
                                             output.device_type, output.device_index, &made),
            "making an output");
      view.capacity = bytes;
    }
    output.tensor.reset(made);
  }
  view.sizes = sizes;
  view.data = ask(torch().aoti_torch_get_data_ptr, output.tensor);
}

// cudaStreamLegacy of CUDA's headers, which need not be at hand here.
void* const kDefaultStream = reinterpret_cast<void*>(std::uintptr_t{1});

void* current_stream(std::int32_t device_index) {
  using CurrentStream = TorchError (*)(std::int32_t device_index, void** stream);
  // there by now: the library has made a tensor on the device
  static const auto function =
      reinterpret_cast<CurrentStream>(find_cuda_function("aoti_torch_get_current_cuda_stream"));
  if (function == nullptr) throw Error(Code::not_supported, "torch does not tell its current CUDA stream");
  void* stream = nullptr;
  check(function(device_index, &stream), "reading the current stream");
  // torch writes the default stream as null, which to an engine means that the caller has none.
  return stream == nullptr ? kDefaultStream : stream;
}

std::vector<Owned<TorchTensor>> run(std::vector<Owned<TorchTensor>> inputs, const Owned<TorchTensor>& blob,
                                    const std::string& name) {
  const auto loaded = find(blob, name);
  auto& engine = *loaded->engine;
  const auto entered_ns = engine.may_measure() ? monotonic_ns() : 0;
  std::vector<TensorView> in;
  std::optional<std::int32_t> device;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto& dense = inputs[i] = contiguous(std::move(inputs[i]));
    TensorView view;
    view.data = ask(torch().aoti_torch_get_data_ptr, dense);
    view.dtype = dtype_of(ask(torch().aoti_torch_get_dtype, dense), i);
    view.sizes = sizes_of(dense);
    if (ask(torch().aoti_torch_get_device_type, dense) == torch().aoti_torch_device_type_cuda()) {
      view.device = DeviceKind::cuda;
      device = ask(torch().aoti_torch_get_device_index, dense);
    }
    in.push_back(view);
  }
  const auto infos = engine.engine().outputs();
  std::vector<Output> outputs(infos.size());
  std::vector<OutputView> out(infos.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    outputs[i].dtype = code_of(infos[i].dtype);
    outputs[i].device_type =
        device ? torch().aoti_torch_device_type_cuda() : torch().aoti_torch_device_type_cpu();
    outputs[i].device_index = device.value_or(0);
    out[i].dtype = infos[i].dtype;
    out[i].device = device ? DeviceKind::cuda : DeviceKind::host;
    out[i].owner = &outputs[i];
    out[i].resize = allocate;
  }
  engine.call(in, out, device ? current_stream(*device) : nullptr, nullptr, entered_ns);
  std::vector<Owned<TorchTensor>> result;
  result.reserve(outputs.size());
  for (auto& output : outputs) result.push_back(std::move(output.tensor));
  return result;
}

}  // namespace

void execute_engine(Slot* stack) {
  auto inputs = take_tensors(stack[0]);
  const auto blob = take<TorchTensor>(stack[1]);
  const auto name = take_text(stack[2]);
  stack[0] = give_tensors(run(std::move(inputs), blob, name));
}

void release_engines(Slot* stack) {
  auto& known = engines();
  std::map<std::pair<std::string, const void*>, std::shared_ptr<LoadedEngine>> gone;
  {
    const std::unique_lock lock(known.mutex);
    gone.swap(known.all);
  }
  stack[0] = slot_of(static_cast<std::int64_t>(gone.size()));
}

}  // namespace torchtrt_viz::torch_ops
