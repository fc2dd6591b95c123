#include "executorch/program.hpp"

#include <dlfcn.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <new>

#include "executorch/delegate.hpp"
#include "executorch/etdump_writer.hpp"
#include "executorch/last_error.hpp"
#include "executorch/value_transfer.hpp"
#include "host_engine/et_types.hpp"
#include "host_engine/runtime_log.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;
using executorch::extension::Module;

constexpr auto kVerification = executorch::extension::Program::Verification::InternalConsistency;

// The delegate's own words where it has any, else what the runtime logged.
RuntimeError runtime_error(const std::string& what, rt::Error error, RuntimeLog& log) {
  const std::string name(error_name(error));
  const auto number = static_cast<std::uint32_t>(error);
  const auto logged = log.take();
  if (const auto reason = take_last_error()) {
    return {reason->with_message(what + ": " + reason->what()), name, number};
  }
  return {Error(to_code(error),
                what + ": executorch says " + name + (logged.empty() ? std::string() : ": " + logged)),
          name, number};
}

void fill_option(const std::string& backend, const std::string& key, const LoadOption& value,
                 rt::BackendOption& out) {
  const std::string full = backend + "." + key;
  if (key.empty() || key.size() >= rt::kMaxOptionKeyLength || key.find('\0') != std::string::npos) {
    throw Error::refused(full, {}, "set",
                         "a key has 1 to " + std::to_string(rt::kMaxOptionKeyLength - 1) + " bytes");
  }
  std::memcpy(out.key, key.data(), key.size());
  if (const auto* flag = std::get_if<bool>(&value)) {
    out.value = *flag;
  } else if (const auto* number = std::get_if<int>(&value)) {
    out.value = *number;
  } else {
    // The runtime's own option type cuts longer values without a word.
    const auto& text = std::get<std::string>(value);
    if (text.size() >= rt::kMaxOptionValueLength || text.find('\0') != std::string::npos) {
      throw Error::refused(full, text, "a text of " + std::to_string(text.size()) + " bytes",
                           "at most " + std::to_string(rt::kMaxOptionValueLength - 1) + " bytes, no NUL");
    }
    std::array<char, rt::kMaxOptionValueLength> buffer{};
    std::memcpy(buffer.data(), text.data(), text.size());
    out.value = buffer;
  }
}

// The map refers to the options; the module makes its own copy of both.
class OptionMap {
 public:
  void fill(const LoadOptions& options) {
    for (const auto& [backend, values] : options) {
      auto& row = rows_.emplace_back();
      for (const auto& [key, value] : values) {
        fill_option(backend, key, value, row.emplace_back());
      }
      if (map_.set_options(backend.c_str(), rt::Span<rt::BackendOption>(row.data(), row.size())) !=
          rt::Error::Ok) {
        throw Error::refused(backend, {}, "given options",
                             "executorch takes options for at most 8 backends, with ids "
                             "of 1 to 63 bytes");
      }
    }
  }
  const rt::LoadBackendOptionsMap& map() const noexcept { return map_; }

 private:
  std::deque<std::vector<rt::BackendOption>> rows_;
  rt::LoadBackendOptionsMap map_;
};

std::string join(const std::vector<std::string>& texts) {
  std::string out;
  for (const auto& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out.empty() ? "none" : out;
}

}  // namespace

std::vector<std::string> registered_backends() {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < rt::get_num_registered_backends(); ++i) {
    if (const auto name = rt::get_backend_name(i); name.ok()) out.emplace_back(*name);
  }
  return out;
}

void load_library(const std::string& path) {
  RuntimeLog log;
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  const char* reason = ::dlerror();
  throw Error(Code::not_found, "cannot load library " + path + ": " + (reason == nullptr ? "" : reason));
}

Program::Program(std::string path, Settings settings) : path_(std::move(path)), settings_(settings) {}

Program::~Program() { close(); }

std::unique_ptr<Program> Program::load(const std::string& path, const LoadOptions& options,
                                       Settings settings) {
  std::unique_ptr<Program> made(new Program(path, settings));
  made->open(options);
  return made;
}

void Program::open(const LoadOptions& options) {
  if (::access(path_.c_str(), R_OK) != 0) {
    throw Error(Code::not_found, "cannot read " + path_ + ": " + std::strerror(errno));
  }
  OptionMap map;
  map.fill(options);
  rt::runtime_init();
  RuntimeLog log;
  const std::lock_guard lock(mutex_);
  if (settings_.trace) {
    log_ = std::make_unique<EventLog>();
    if (settings_.method_only) {
      log_->set_event_tracer_profiling_level(rt::EventTracerProfilingLevel::kProfileMethodOnly);
    }
  }
  anchors_.emplace_back("session", clock_anchor());
  const auto mode = settings_.mmap ? Module::LoadMode::Mmap : Module::LoadMode::File;
  module_ = std::make_unique<Module>(path_, mode, nullptr, nullptr, nullptr, settings_.share_memory);
  const auto error = module_->load(map.map(), kVerification);
  if (error != rt::Error::Ok)
    throw runtime_error(path_ + " is not an ExecuTorch program, or is damaged", error, log);
  const auto program = module_->program();
  for (std::size_t i = 0; i < program->num_methods(); ++i) {
    const auto name = program->get_method_name(i);
    if (!name.ok()) throw runtime_error(path_ + ": its methods cannot be read", name.error(), log);
    methods_.emplace_back(*name);
  }
  for (const auto& method : methods_) check_method(method);
  if (!settings_.load_methods) return;
  for (const auto& method : methods_) load_method_locked(method);
}

void Program::check_method(const std::string& method) {
  RuntimeLog log;
  const auto meta = module_->method_meta(method);
  if (!meta.ok())
    throw runtime_error("method '" + method + "' of " + path_ + " cannot be read", meta.error(), log);
  // The runtime aborts the process where a damaged program names values that are not there.
  for (std::size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto tag = meta->input_tag(i);
    if (!tag.ok()) throw runtime_error(path_ + " is damaged: input " + std::to_string(i), tag.error(), log);
  }
  for (std::size_t i = 0; i < meta->num_outputs(); ++i) {
    const auto tag = meta->output_tag(i);
    if (!tag.ok()) throw runtime_error(path_ + " is damaged: output " + std::to_string(i), tag.error(), log);
  }
  for (std::size_t i = 0; i < meta->num_backends(); ++i) {
    const auto name = meta->get_backend_name(i);
    if (!name.ok())
      throw runtime_error("method '" + method + "' of " + path_ + ": its backends", name.error(), log);
    const auto* backend = rt::get_backend_class(*name);
    if (backend != nullptr && backend->is_available()) continue;
    std::string text =
        "method '" + method + "' of " + path_ + " needs the backend '" + *name + "', which is ";
    text += backend == nullptr ? "not registered in this process"
                               : "registered and says that it is not available";
    if (std::strcmp(*name, kBackendId) == 0) text += " (" + delegate_registration().detail + ")";
    throw Error(Code::not_found, text + "; registered: " + join(registered_backends()) +
                                     ". Load the library that brings it before the program");
  }
}

// Under the mutex: the session is open and the program has the method.
void Program::check_known(const std::string& method) const {
  if (!module_) throw Error(Code::invalid_argument, "the session of " + path_ + " is closed");
  if (std::find(methods_.begin(), methods_.end(), method) == methods_.end()) {
    throw Error(Code::not_found, path_ + " has no method '" + method + "', only " + join(methods_));
  }
}

// Runs `work` as one run of the log, which keeps how it ended.
template <typename Work>
void Program::logged(const std::string& method, Work&& work) {
  if (log_) log_->begin_run(method);
  try {
    work();
  } catch (...) {
    if (log_) log_->end_run(RunStatus::failed, current_failure().what());
    throw;
  }
  if (log_) log_->end_run(RunStatus::ok, {});
}

void Program::load_method_locked(const std::string& method) {
  if (module_ && module_->is_method_loaded(method)) return;
  check_known(method);
  RuntimeLog log;
  (void)take_last_error();
  EngineLoadScope scope;
  const auto note_engines = [&] {
    const std::lock_guard lock(notes_mutex_);
    engines_.insert(engines_.end(), scope.engines().begin(), scope.engines().end());
  };
  const std::string what = "cannot load method '" + method + "' of " + path_;
  try {
    logged(method, [&] {
      try {
        const auto error = module_->load_method(method, nullptr, log_.get());
        if (error != rt::Error::Ok) throw runtime_error(what, error, log);
      } catch (const std::bad_alloc&) {
        // The module makes room for whatever the program plans, and a damaged one plans anything.
        throw Error(Code::out_of_memory, what + ": there is no memory for what it plans to use");
      }
    });
  } catch (...) {
    note_engines();
    throw;
  }
  note_engines();
}

void Program::load_method(const std::string& method) {
  const std::lock_guard lock(mutex_);
  load_method_locked(method);
}

bool Program::is_loaded(const std::string& method) {
  const std::lock_guard lock(mutex_);
  return module_ && module_->is_method_loaded(method);
}

MethodDescription Program::describe(const std::string& method) {
  const std::lock_guard lock(mutex_);
  check_known(method);
  RuntimeLog log;
  const auto meta = module_->method_meta(method);
  if (!meta.ok())
    throw runtime_error("method '" + method + "' of " + path_ + " cannot be read", meta.error(), log);
  return describe_method(*meta);
}

std::vector<OutputValue> Program::run(const std::string& method, const std::vector<InputValue>& inputs) {
  const std::lock_guard lock(mutex_);
  load_method_locked(method);
  RuntimeLog log;
  const auto meta = module_->method_meta(method);
  if (!meta.ok())
    throw runtime_error("method '" + method + "' of " + path_ + " cannot be read", meta.error(), log);
  InputTransfer transfer;
  try {
    transfer.wrap(*meta, inputs);
  } catch (const Error& failure) {
    throw failure.with_message("cannot run '" + method + "' of " + path_ + ": " + failure.what());
  }
  (void)take_last_error();
  std::vector<rt::EValue> results;
  logged(method, [&] {
    auto result = module_->execute(method, transfer.values());
    if (!result.ok()) throw runtime_error("'" + method + "' of " + path_ + " failed", result.error(), log);
    results = std::move(*result);
  });
  std::vector<OutputValue> outputs;
  outputs.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) outputs.push_back(copy_output(results[i], i));
  return outputs;
}

std::string Program::etdump(std::size_t first_block) {
  {
    const std::lock_guard lock(notes_mutex_);
    anchors_.emplace_back("etdump", clock_anchor());
  }
  return write_etdump(log_ ? log_->snapshot(first_block) : EventColumns{{}, {}, {std::string()}});
}

void Program::clear() {
  const std::lock_guard lock(mutex_);
  if (log_) log_->clear();
}

std::vector<EngineInfo> Program::engines() {
  const std::lock_guard lock(notes_mutex_);
  std::vector<EngineInfo> out;
  out.reserve(engines_.size());
  for (const auto& engine : engines_) out.push_back(engine->info());
  return out;
}

std::vector<std::pair<std::string, ClockAnchor>> Program::anchors() {
  const std::lock_guard lock(notes_mutex_);
  return anchors_;
}

void Program::close() {
  const std::lock_guard lock(mutex_);
  module_.reset();
}

}  // namespace torchtrt_viz::et
