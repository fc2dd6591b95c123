// torch.ops.torchtrt_viz.execute_engine: an engine as an operator, for AOTInductor packages.
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/instrumented_engine.hpp"
#include "executorch/loaded_engine.hpp"
#include "torch_ops/operators.hpp"
#include "torch_ops/translated.hpp"

namespace torchtrt_viz::torch_ops {
namespace {

struct Pair {
  at::ScalarType scalar;
  DType dtype;
};

constexpr Pair kTypes[] = {
    {at::ScalarType::Byte, DType::uint8},
    {at::ScalarType::Char, DType::int8},
    {at::ScalarType::Short, DType::int16},
    {at::ScalarType::Int, DType::int32},
    {at::ScalarType::Long, DType::int64},
    {at::ScalarType::UInt16, DType::uint16},
    {at::ScalarType::UInt32, DType::uint32},
    {at::ScalarType::UInt64, DType::uint64},
    {at::ScalarType::Half, DType::float16},
    {at::ScalarType::BFloat16, DType::bfloat16},
    {at::ScalarType::Float, DType::float32},
    {at::ScalarType::Double, DType::float64},
    {at::ScalarType::ComplexHalf, DType::complex32},
    {at::ScalarType::ComplexFloat, DType::complex64},
    {at::ScalarType::ComplexDouble, DType::complex128},
    {at::ScalarType::Bool, DType::boolean},
    {at::ScalarType::Float8_e4m3fn, DType::float8_e4m3fn},
    {at::ScalarType::Float8_e5m2, DType::float8_e5m2},
};

DType dtype_of(at::ScalarType scalar, std::size_t i) {
  for (const auto& pair : kTypes) {
    if (pair.scalar == scalar) return pair.dtype;
  }
  TORCH_CHECK_TYPE(false, "input ", i, " of the engine has type ", c10::toString(scalar),
                   ", which engines do not take");
}

at::ScalarType scalar_of(DType dtype) {
  for (const auto& pair : kTypes) {
    if (pair.dtype == dtype) return pair.scalar;
  }
  TORCH_CHECK_TYPE(false, "an output of the engine has type ", std::string(dtype_name(dtype)),
                   ", which torch lacks");
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
  return translated(
      [&] { return std::make_shared<LoadedEngine>(load_engine(bytes, name, "torch", std::move(options))); });
}

std::shared_ptr<LoadedEngine> find(const at::Tensor& tensor, const std::string& name) {
  TORCH_CHECK_TYPE(
      tensor.scalar_type() == at::ScalarType::Byte && tensor.device().is_cpu() && tensor.is_contiguous(),
      "engine '", name, "' is a contiguous uint8 tensor in host memory: a TR01 or TR02 blob");
  const std::span bytes(static_cast<const std::byte*>(tensor.const_data_ptr()),
                        static_cast<std::size_t>(tensor.numel()));
  const std::pair key(name, tensor.const_data_ptr());
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
  at::Tensor tensor;
  at::TensorOptions options;
};

// The output is made when its sizes are known, and made again where they change.
void allocate(OutputView& view, const Dims& sizes) {
  auto& output = *static_cast<Output*>(view.owner);
  if (!output.tensor.defined() || !(sizes == view.sizes)) {
    const auto bytes = static_cast<std::size_t>(sizes.elements()) * dtype_size(view.dtype);
    if (output.tensor.defined() && bytes <= view.capacity) {
      // What the engine has written there stays: the beginning of it is the output.
      const auto elements = sizes.elements();
      output.tensor = output.tensor.flatten().slice(0, 0, elements).view(sizes.sizes());
    } else {
      output.tensor = at::empty(sizes.sizes(), output.options);
      view.capacity = bytes;
    }
  }
  view.sizes = sizes;
  view.data = output.tensor.mutable_data_ptr();
}

// cudaStreamLegacy of CUDA's headers, which need not be at hand here.
void* const kDefaultStream = reinterpret_cast<void*>(std::uintptr_t{1});

void* stream_of(const std::optional<at::Device>& device) {
  if (!device) return nullptr;
  const c10::impl::VirtualGuardImpl guard(device->type());
  void* const handle = guard.getStream(*device).native_handle();
  // torch writes the default stream as null, which to an engine means that the caller has none.
  return handle == nullptr ? kDefaultStream : handle;
}

std::vector<at::Tensor> execute_engine(
    at::TensorList inputs, const at::Tensor& blob,
    std::string name) {  // NOLINT(performance-unnecessary-value-param): torch's
  const auto loaded = find(blob, name);
  auto& engine = *loaded->engine;
  const auto entered_ns = engine.may_measure() ? monotonic_ns() : 0;
  std::vector<at::Tensor> dense;
  std::vector<TensorView> in;
  std::optional<at::Device> device;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    dense.push_back(inputs[i].contiguous());
    TensorView view;
    view.data = dense.back().mutable_data_ptr();
    view.dtype = dtype_of(dense.back().scalar_type(), i);
    view.sizes = Dims(dense.back().sizes());
    if (dense.back().is_cuda()) {
      view.device = DeviceKind::cuda;
      device = dense.back().device();
    }
    in.push_back(view);
  }
  const auto infos = engine.engine().outputs();
  std::vector<Output> outputs(infos.size());
  std::vector<OutputView> out(infos.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    outputs[i].options =
        at::TensorOptions(scalar_of(infos[i].dtype)).device(device.value_or(at::Device(at::kCPU)));
    out[i].dtype = infos[i].dtype;
    out[i].device = device ? DeviceKind::cuda : DeviceKind::host;
    out[i].owner = &outputs[i];
    out[i].resize = allocate;
  }
  translated([&] { engine.call(in, out, stream_of(device), nullptr, entered_ns); });
  std::vector<at::Tensor> result;
  result.reserve(outputs.size());
  for (auto& output : outputs) result.push_back(std::move(output.tensor));
  return result;
}

std::int64_t release_engines() {
  auto& known = engines();
  std::map<std::pair<std::string, const void*>, std::shared_ptr<LoadedEngine>> gone;
  {
    const std::unique_lock lock(known.mutex);
    gone.swap(known.all);
  }
  return static_cast<std::int64_t>(gone.size());
}

}  // namespace

TORCH_LIBRARY(torchtrt_viz, library) {
  library.def("execute_engine(Tensor[] inputs, Tensor engine, str name) -> Tensor[]");
  library.def("release_engines() -> int", release_engines);
  library.def("profile_ops_are_ours() -> bool", profile_ops_are_ours);
  library.def("define_profile_ops() -> bool", define_profile_ops);
  library.def("withdraw_profile_ops() -> bool", withdraw_profile_ops);
}

TORCH_LIBRARY_IMPL(torchtrt_viz, CompositeExplicitAutograd, library) {
  library.impl("execute_engine", execute_engine);
}

}  // namespace torchtrt_viz::torch_ops
