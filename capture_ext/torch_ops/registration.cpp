// The operators are defined when the library is loaded.
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "torch_ops/operators.hpp"
#include "torch_ops/torch_library.hpp"

namespace torchtrt_viz::torch_ops {
namespace {

template <bool (*function)()>
void give_answer(Slot* stack) {
  stack[0] = slot_of(function());
}

constexpr Operator kEngineOperators[] = {
    {"release_engines", "release_engines() -> int", kernel<release_engines>},
    {"profile_ops_are_ours", "profile_ops_are_ours() -> bool", kernel<give_answer<profile_ops_are_ours>>},
    {"define_profile_ops", "define_profile_ops() -> bool", kernel<give_answer<define_profile_ops>>},
    {"withdraw_profile_ops", "withdraw_profile_ops() -> bool", kernel<give_answer<withdraw_profile_ops>>},
};

struct Libraries {
  std::mutex mutex;
  Owned<TorchLibrary> all, engines;
};

// Never destroyed: torch's own registries may be gone before statics of ours.
Libraries& libraries() {
  static Libraries* const instance = new Libraries;  // NOLINT
  return *instance;
}

// Empty, or why the operators are not there.
std::string define_operators() {
  auto& own = libraries();
  const std::lock_guard lock(own.mutex);
  if (own.all) return {};
  if (auto why = find_torch(); !why.empty()) return why;
  auto all = library_fragment("torchtrt_viz");
  check(torch().aoti_torch_library_def(
            all.get(), "execute_engine(Tensor[] inputs, Tensor engine, str name) -> Tensor[]"),
        "defining torchtrt_viz::execute_engine");
  for (const auto& op : kEngineOperators) {
    check(torch().aoti_torch_library_def(all.get(), op.schema), "defining the operators of torchtrt_viz");
    add_kernel(all, op.name, op.function);
  }
  auto engines = library_for_key("torchtrt_viz", "CompositeExplicitAutograd");
  add_kernel(engines, "execute_engine", kernel<execute_engine>);
  define_profile_ops();
  own.all = std::move(all);
  own.engines = std::move(engines);
  return {};
}

// Nothing is thrown: neither at a program that loads the library nor through a C function.
std::string why_not() noexcept {
  try {
    return define_operators();
  } catch (...) {
    return current_failure().what();
  }
}

const bool kDefined = why_not().empty();

}  // namespace
}  // namespace torchtrt_viz::torch_ops

extern "C" const char* torchtrt_viz_torch_ops_error(void) {
  thread_local std::string why;
  why = torchtrt_viz::torch_ops::why_not();
  return why.empty() ? nullptr : why.c_str();
}

extern "C" int torchtrt_viz_withdraw_profile_ops(void) {
  bool had = false;
  torchtrt_viz::regardless([&] { had = torchtrt_viz::torch_ops::withdraw_profile_ops(); });
  return had ? 1 : 0;
}
