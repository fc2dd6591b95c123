#include "torch_ops/torch_functions.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "core/error.hpp"

namespace torchtrt_viz::torch_ops {
namespace {

std::atomic<const TorchFunctions*> found_functions{nullptr};

constexpr const char* kNeeded = "torch 2.10 and later have them";

std::string path_of(void* library) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr) return "torch";
  return map->l_name;
}

template <typename Function>
bool set(Function& function, void* address) {
  function = reinterpret_cast<Function>(address);  // POSIX gives functions as void*
  return function != nullptr;
}

}  // namespace

std::vector<std::string> resolve(const Lookup& lookup, TorchFunctions& functions) {
  std::vector<std::string> missing;
#define TORCHTRT_VIZ_RESOLVE(result, name, ...) \
  if (!set(functions.name, lookup(#name))) missing.emplace_back(#name);
  TORCHTRT_VIZ_TORCH_FUNCTIONS(TORCHTRT_VIZ_RESOLVE)
#undef TORCHTRT_VIZ_RESOLVE
  set(functions.torch_exception_get_what_without_backtrace,
      lookup("torch_exception_get_what_without_backtrace"));
  return missing;
}

std::string lacking(std::string_view library, std::uint64_t version,
                    const std::vector<std::string>& missing) {
  constexpr std::size_t kNamed = 3;
  std::string text(library);
  if (version != 0) {
    text +=
        " (torch " + std::to_string(version >> 56U) + "." + std::to_string((version >> 48U) & 0xFFU) + ")";
  }
  text += " lacks ";
  for (std::size_t i = 0; i < missing.size() && i < kNamed; ++i) text += (i == 0 ? "" : ", ") + missing[i];
  if (missing.size() > kNamed) text += " and " + std::to_string(missing.size() - kNamed) + " more functions";
  return text + "; " + kNeeded;
}

// Python loads torch's libraries without making their symbols global, so the loaded one is asked for by name;
// a native program may hold torch in itself.
std::string find_torch() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (found_functions.load() != nullptr) return {};
  void* const library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW);
  void* const scope = library == nullptr ? RTLD_DEFAULT : library;
  const auto lookup = [scope](const char* name) { return dlsym(scope, name); };
  auto functions = std::make_unique<TorchFunctions>();
  const auto missing = resolve(lookup, *functions);
  if (missing.empty()) {
    found_functions.store(
        functions.release());  // for as long as the process: operators may be called at any time
    return {};
  }
  std::uint64_t (*version)() = nullptr;
  const bool told = set(version, lookup("aoti_torch_abi_version"));
  if (library == nullptr && !told) {
    return std::string("no torch is loaded in this process: import torch, or load libtorch_cpu.so, first");
  }
  return lacking(library == nullptr ? "the torch of this program" : path_of(library), told ? version() : 0,
                 missing);
}

const TorchFunctions& torch() noexcept { return *found_functions.load(std::memory_order_acquire); }

void* find_cuda_function(const char* name) noexcept {
  for (const char* const file : {"libtorch_cuda.so", "libtorch_hip.so"}) {
    if (void* const library = dlopen(file, RTLD_NOLOAD | RTLD_NOW)) return dlsym(library, name);
  }
  return dlsym(RTLD_DEFAULT, name);
}

void check(TorchError error, const char* doing) {
  if (error == 0) return;
  const auto what = torch().torch_exception_get_what_without_backtrace;
  const char* const said = what == nullptr ? nullptr : what();
  throw Error(Code::internal, std::string("torch failed while ") + doing +
                                  (said == nullptr || *said == '\0' ? "" : std::string(": ") + said));
}

}  // namespace torchtrt_viz::torch_ops
