// A loaded .pte: its module, its event log and its engines, which live and die together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine_registry.hpp"
#include "core/error.hpp"
#include "core/tensor.hpp"
#include "core/visibility.hpp"
#include "executorch/event_log.hpp"
#include "executorch/ticks.hpp"

namespace executorch::extension::module {
class Module;
}

namespace torchtrt_viz::et {

using LoadOption = std::variant<bool, int, std::string>;
using LoadOptions = std::map<std::string, std::map<std::string, LoadOption>>;

// What the runtime refused, with ExecuTorch's own name and number of the error.
class TORCHTRT_VIZ_API RuntimeError : public Error {
 public:
  RuntimeError(const Error& failure, std::string name, std::uint32_t number)
      : Error(failure), name_(std::move(name)), number_(number) {}
  const std::string& name() const noexcept { return name_; }
  std::uint32_t number() const noexcept { return number_; }

 private:
  std::string name_;
  std::uint32_t number_;
};

struct InputTensor {
  TensorView view;
  std::vector<std::int64_t> strides;  // in elements
};
using InputValue = std::variant<std::int64_t, double, bool, InputTensor>;

struct OutputTensor {
  DType dtype = DType::float32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // in elements
  std::unique_ptr<std::byte[]> data;
};
using OutputValue = std::variant<std::monostate, std::int64_t, double, bool, std::string, OutputTensor>;

struct ValueMeta {
  std::string tag;
  std::string name;
  std::optional<DType> dtype;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> dim_order;
  std::size_t nbytes = 0;
};

struct MethodDescription {
  std::string name;
  std::vector<ValueMeta> inputs, outputs;
  std::vector<std::string> backends;
  std::size_t instructions = 0;
};

class TORCHTRT_VIZ_API Program {
 public:
  struct Settings {
    bool trace = true;
    bool method_only = false;  // the runtime records no operators
    bool load_methods = true;  // all of them now, else each at its first use
    bool mmap = true;
    bool share_memory = false;  // methods share planned memory: programs with state shared between methods
  };

  static std::unique_ptr<Program> load(const std::string& path, const LoadOptions& options,
                                       Settings settings);
  ~Program();

  const std::string& path() const noexcept { return path_; }
  bool traced() const noexcept { return log_ != nullptr; }
  const std::vector<std::string>& methods() const noexcept { return methods_; }
  MethodDescription describe(const std::string& method);
  void load_method(const std::string& method);
  bool is_loaded(const std::string& method);

  // Waits for a run of another thread. Inputs stay the caller's and are used in place where they are dense in
  // the order of dimensions that the program was exported with.
  std::vector<OutputValue> run(const std::string& method, const std::vector<InputValue>& inputs);

  // All blocks since loading or clear(), as a file; valid and empty where there are none. Any time, any
  // number of times, also beside a run and after close().
  // From a block on, which blocks() counts from 0.
  std::string etdump(std::size_t first_block = 0);
  EventLog* log() noexcept { return log_.get(); }
  void clear();
  std::vector<EngineInfo> engines();
  std::vector<std::pair<std::string, ClockAnchor>> anchors();
  void close();

 private:
  Program(std::string path, Settings settings);
  void open(const LoadOptions& options);
  void check_method(const std::string& method);
  void load_method_locked(const std::string& method);
  void check_known(const std::string& method) const;
  template <typename Work>
  void logged(const std::string& method, Work&& work);

  const std::string path_;
  const Settings settings_;
  std::unique_ptr<EventLog> log_;  // outlives the module, which reports to it to the end
  std::mutex mutex_;               // of everything that touches the module
  std::unique_ptr<executorch::extension::module::Module> module_;
  std::vector<std::string> methods_;
  std::mutex notes_mutex_;
  std::vector<std::shared_ptr<EngineEntry>> engines_;
  std::vector<std::pair<std::string, ClockAnchor>> anchors_;
};

TORCHTRT_VIZ_API std::vector<std::string> registered_backends();

// Loads a library that registers kernels or backends; it stays for the life of the process.
TORCHTRT_VIZ_API void load_library(const std::string& path);

}  // namespace torchtrt_viz::et
