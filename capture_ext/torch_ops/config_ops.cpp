// torch.ops.tensorrt: the process-wide profiling switch, as Torch-TensorRT's global profiling controls define
// it.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/config.hpp"
#include "core/error.hpp"
#include "torch_ops/operators.hpp"
#include "torch_ops/translated.hpp"

namespace torchtrt_viz::torch_ops {
namespace {

void set_path_prefix(std::string path_prefix) {
  translated([&] { change_config({.path_prefix = std::move(path_prefix)}); });
}

// Files of packages are Perfetto or TREX; an ETDump exists only for ExecuTorch programs.
void set_format(std::string format) {
  TORCH_CHECK_VALUE(format == "perfetto" || format == "trex", "option 'profile format' cannot be '", format,
                    "': choose perfetto or trex");
  translated([&] { change_config({.format = std::move(format)}); });
}

void set_execution(bool enabled) {
  translated([&] { change_config({.execution = enabled}); });
}

std::string get_path_prefix() { return config_snapshot().path_prefix; }
std::string get_format() { return format_name(config_snapshot().format); }
bool get_execution() { return config_snapshot().execution; }

constexpr const char* kNames[] = {"set_profile_path_prefix", "set_profile_format", "set_profile_execution",
                                  "get_profile_path_prefix", "get_profile_format", "get_profile_execution"};

bool defined(const char* name) {
  return c10::Dispatcher::singleton().findSchema({std::string("tensorrt::") + name, ""}).has_value();
}

struct Definitions {
  std::mutex mutex;
  std::unique_ptr<torch::Library> library;  // null: the operators are not ours
  std::unique_ptr<torch::Library> anchor;
};

// Never destroyed: torch's own registries may be gone before statics of ours.
Definitions& definitions() {
  static Definitions* const instance = new Definitions;  // NOLINT
  return *instance;
}

// An entry of the dispatcher for each name that stays when the definitions go, at a key that no tensor has:
// whoever still holds one of the operators gets an error or the other library's operator, and no dangling
// entry.
std::unique_ptr<torch::Library> make_anchor() {
  constexpr auto kKey = c10::DispatchKey::PrivateUse3;
  auto anchor = std::make_unique<torch::Library>(torch::Library::IMPL, "tensorrt", kKey, __FILE__, __LINE__);
  for (const char* name : kNames) anchor->impl(name, torch::CppFunction::makeFallthrough());
  return anchor;
}

}  // namespace

// Defining an operator that is there already would throw.
bool define_profile_ops() {
  auto& own = definitions();
  const std::lock_guard lock(own.mutex);
  if (own.library) return true;
  for (const char* name : kNames) {
    if (defined(name)) return false;
  }
  if (!own.anchor) own.anchor = make_anchor();
  auto library = std::make_unique<torch::Library>(torch::Library::FRAGMENT, "tensorrt", std::nullopt,
                                                  __FILE__, __LINE__);
  library->def("set_profile_path_prefix(str path_prefix) -> ()", set_path_prefix);
  library->def("set_profile_format(str profile_format) -> ()", set_format);
  library->def("set_profile_execution(bool enabled) -> ()", set_execution);
  library->def("get_profile_path_prefix() -> str", get_path_prefix);
  library->def("get_profile_format() -> str", get_format);
  library->def("get_profile_execution() -> bool", get_execution);
  own.library = std::move(library);
  return true;
}

bool withdraw_profile_ops() {
  auto& own = definitions();
  const std::lock_guard lock(own.mutex);
  const bool had = own.library != nullptr;
  own.library.reset();
  return had;
}

bool profile_ops_are_ours() {
  auto& own = definitions();
  const std::lock_guard lock(own.mutex);
  return own.library != nullptr;
}

namespace {
const bool kDefined = define_profile_ops();
}

}  // namespace torchtrt_viz::torch_ops

extern "C" int torchtrt_viz_withdraw_profile_ops(void) {
  bool had = false;
  torchtrt_viz::regardless([&] { had = torchtrt_viz::torch_ops::withdraw_profile_ops(); });
  return had ? 1 : 0;
}
