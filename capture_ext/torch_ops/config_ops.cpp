// torch.ops.tensorrt: the process-wide profiling switch, as Torch-TensorRT's global profiling controls define
// it.
#include <mutex>
#include <string>
#include <utility>

#include "core/config.hpp"
#include "core/error.hpp"
#include "torch_ops/operators.hpp"
#include "torch_ops/torch_library.hpp"

namespace torchtrt_viz::torch_ops {
namespace {

void set_path_prefix(Slot* stack) { change_config({.path_prefix = take_text(stack[0])}); }

// Files of packages are Perfetto or TREX; an ETDump exists only for ExecuTorch programs.
void set_format(Slot* stack) {
  auto format = take_text(stack[0]);
  if (format != "perfetto" && format != "trex") {
    const auto shown = "'" + format + "'";
    throw Error::refused("profile format", std::move(format), shown, "choose perfetto or trex");
  }
  change_config({.format = std::move(format)});
}

void set_execution(Slot* stack) { change_config({.execution = value_in<bool>(stack[0])}); }

void get_path_prefix(Slot* stack) { stack[0] = give_text(config_snapshot().path_prefix); }
void get_format(Slot* stack) { stack[0] = give_text(std::string(format_name(config_snapshot().format))); }
void get_execution(Slot* stack) { stack[0] = slot_of(config_snapshot().execution); }

void withdrawn(Slot* /*stack*/) { throw Error(Code::invalid_state, "this profiling operator was withdrawn"); }

constexpr Operator kProfileOperators[] = {
    {"set_profile_path_prefix", "set_profile_path_prefix(str path_prefix) -> ()", kernel<set_path_prefix>},
    {"set_profile_format", "set_profile_format(str profile_format) -> ()", kernel<set_format>},
    {"set_profile_execution", "set_profile_execution(bool enabled) -> ()", kernel<set_execution>},
    {"get_profile_path_prefix", "get_profile_path_prefix() -> str", kernel<get_path_prefix>},
    {"get_profile_format", "get_profile_format() -> str", kernel<get_format>},
    {"get_profile_execution", "get_profile_execution() -> bool", kernel<get_execution>},
};

struct Definitions {
  std::mutex mutex;
  Owned<TorchLibrary> library;  // null: the operators are not ours
  Owned<TorchLibrary> anchor;
};

// Never destroyed: torch's own registries may be gone before statics of ours.
Definitions& definitions() {
  static Definitions* const instance = new Definitions;  // NOLINT
  return *instance;
}

// An entry of the dispatcher for each name that stays when the definitions go, at a key that no tensor has:
// whoever still holds one of the operators gets an error or the other library's operator, and no dangling
// entry.
Owned<TorchLibrary> make_anchor() {
  auto anchor = library_for_key("tensorrt", "PrivateUse3");
  for (const auto& op : kProfileOperators) add_kernel(anchor, op.name, kernel<withdrawn>);
  return anchor;
}

}  // namespace

// torch cannot be asked whether an operator is there: a definition that is refused is another library's. What
// was defined before it goes with `library`. (torch up to 2.12 also prints what it refused.)
bool define_profile_ops() {
  auto& own = definitions();
  const std::lock_guard lock(own.mutex);
  if (own.library) return true;
  auto library = library_fragment("tensorrt");
  for (const auto& op : kProfileOperators) {
    if (torch().aoti_torch_library_def(library.get(), op.schema) != 0) return false;
  }
  if (!own.anchor) own.anchor = make_anchor();
  for (const auto& op : kProfileOperators) add_kernel(library, op.name, op.function);
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

}  // namespace torchtrt_viz::torch_ops
