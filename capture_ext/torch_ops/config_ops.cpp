// torch.ops.tensorrt: the process-wide profiling switch, as Torch-TensorRT's global profiling controls define
// it.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "torch_ops/operators.hpp"

namespace torchtrt_viz::torch_ops {
namespace {

void raise_if(const Status& status) { TORCH_CHECK_VALUE(status.ok(), status.message); }

void set_path_prefix(std::string path_prefix) {
  raise_if(change_config({.path_prefix = std::move(path_prefix)}));
}

// Files of packages are Perfetto or TREX; an ETDump exists only for ExecuTorch programs.
void set_format(std::string format) {
  TORCH_CHECK_VALUE(format == "perfetto" || format == "trex", "option 'profile format' cannot be '", format,
                    "': choose perfetto or trex");
  raise_if(change_config({.format = std::move(format)}));
}

void set_execution(bool enabled) { raise_if(change_config({.execution = enabled})); }

std::string get_path_prefix() { return config_snapshot().path_prefix; }
std::string get_format() { return format_name(config_snapshot().format); }
bool get_execution() { return config_snapshot().execution; }

constexpr const char* kNames[] = {"set_profile_path_prefix", "set_profile_format", "set_profile_execution",
                                  "get_profile_path_prefix", "get_profile_format", "get_profile_execution"};

bool defined(const char* name) {
  return c10::Dispatcher::singleton().findSchema({std::string("tensorrt::") + name, ""}).has_value();
}

// Who has them, at the time when this library is loaded. Defining one that is there already would throw.
bool define_where_missing() {
  for (const char* name : kNames) {
    if (defined(name)) return false;
  }
  static torch::Library library(torch::Library::FRAGMENT, "tensorrt", std::nullopt, __FILE__, __LINE__);
  library.def("set_profile_path_prefix(str path_prefix) -> ()", set_path_prefix);
  library.def("set_profile_format(str profile_format) -> ()", set_format);
  library.def("set_profile_execution(bool enabled) -> ()", set_execution);
  library.def("get_profile_path_prefix() -> str", get_path_prefix);
  library.def("get_profile_format() -> str", get_format);
  library.def("get_profile_execution() -> bool", get_execution);
  return true;
}

const bool kOurs = define_where_missing();

}  // namespace

bool profile_ops_are_ours() { return kOurs; }

}  // namespace torchtrt_viz::torch_ops
