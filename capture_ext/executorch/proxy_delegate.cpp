#include "executorch/proxy_delegate.hpp"

#include <executorch/runtime/backend/interface.h>

#include <deque>
#include <memory>
#include <mutex>

#include "core/blob.hpp"
#include "core/clock.hpp"
#include "core/instrumented_engine.hpp"
#include "executorch/delegate_number.hpp"
#include "executorch/load_options.hpp"
#include "executorch/tracer_sink.hpp"
#include "host_engine/et_types.hpp"
#include "host_engine/runtime_log.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

// The wrapped backend's handle as an engine: its call is one step, and what happens inside is its own affair.
class WrappedEngine final : public Engine {
 public:
  WrappedEngine(const rt::BackendInterface& backend, std::string id, rt::DelegateHandle* handle)
      : backend_(backend), id_(std::move(id)), handle_(handle) {}
  ~WrappedEngine() override { backend_.destroy(handle_); }

  // Of the next call; under the proxy's own mutex.
  void arguments(rt::BackendExecutionContext* context, rt::Span<rt::EValue*> args) {
    context_ = context;
    args_ = args;
    error_ = rt::Error::Ok;
  }
  rt::Error last_error() const noexcept { return error_; }

  std::string_view runtime() const override { return id_; }
  std::span<const BindingInfo> inputs() const override { return {}; }
  std::span<const BindingInfo> outputs() const override { return {}; }
  void bind_inputs(std::span<const TensorView>) override {}
  void infer_shapes() override {}
  void bind_outputs(std::span<OutputView>) override {}
  void enqueue(std::uint64_t, void*, Record) override {
    RuntimeLog log;
    error_ = backend_.execute(*context_, handle_, args_);
    if (error_ == rt::Error::Ok) return;
    std::string text = id_ + " failed: " + std::string(error_name(error_));
    if (const auto reason = log.take(); !reason.empty()) text += ": " + reason;
    throw Error(to_code(error_), text);
  }
  void stage_outputs(std::span<OutputView>) override {}
  void synchronize() override {}
  void want(Record) override {}
  void prepare() override {}
  std::int64_t attachments() const override { return 0; }
  std::int64_t contexts() const override { return 1; }
  Level deepest() const override { return Level::delegate; }
  void collect(SpanReports&) override {}
  const LayerTable& layers() const override { return layers_; }
  std::string layer_information() const override { return {}; }

 private:
  const rt::BackendInterface& backend_;
  const std::string id_;
  rt::DelegateHandle* handle_;
  rt::BackendExecutionContext* context_ = nullptr;
  rt::Span<rt::EValue*> args_{nullptr, static_cast<std::size_t>(0)};
  rt::Error error_ = rt::Error::Ok;
  LayerTable layers_;
};

struct ProxyHandle {
  std::mutex mutex;  // from the arguments of a call to its end
  std::unique_ptr<DelegateNumber> number;
  std::unique_ptr<InstrumentedEngine> engine;
  WrappedEngine* wrapped = nullptr;
  std::string metadata;
};

class ProxyBackend final : public rt::BackendInterface {
 public:
  ProxyBackend(const rt::BackendInterface& backend, std::string id, std::string wrapper)
      : backend_(backend), id_(std::move(id)), wrapper_(std::move(wrapper)) {}

  const std::string& id() const noexcept { return id_; }
  const std::string& wrapper() const noexcept { return wrapper_; }

  bool is_available() const override { return backend_.is_available(); }

  rt::Result<rt::DelegateHandle*> init(rt::BackendInitContext& context, rt::FreeableBuffer* processed,
                                       rt::ArrayRef<rt::CompileSpec> specs) const override try {
    InstrumentedEngine::Options options;
    options.load = read_load_options(context);
    std::vector<rt::BackendOption> passed;  // our options are not the backend's business
    for (const auto& option : context.runtime_specs()) {
      if (!is_profile_option(option.key)) passed.push_back(option);
    }
    EngineIdentity identity;
    identity.content_hash =
        content_hash({static_cast<const std::byte*>(processed->data()), processed->size()});
    rt::BackendInitContext inner(context.get_runtime_allocator(), context.event_tracer(),
                                 context.get_method_name(), context.get_named_data_map(),
                                 rt::Span<const rt::BackendOption>(passed.data(), passed.size()));
    auto made = backend_.init(inner, processed, specs);
    if (!made.ok()) return made.error();
    auto wrapped = std::make_unique<WrappedEngine>(backend_, id_, *made);  // destroys the handle from here on

    auto handle = std::make_unique<ProxyHandle>();
    identity.method = context.get_method_name() == nullptr ? "" : context.get_method_name();
    handle->number = std::make_unique<DelegateNumber>(context.get_runtime_allocator(), identity.method);
    identity.delegate_index = handle->number->value();
    identity.name = id_;
    identity.runtime = id_;
    identity.owner = "executorch";
    handle->wrapped = wrapped.get();
    handle->engine = InstrumentedEngine::create(std::move(wrapped), std::move(identity), std::move(options));
    handle->metadata = delegate_metadata(handle->engine->entry()->info());
    return static_cast<rt::DelegateHandle*>(handle.release());
  } catch (...) {
    return fail("init");
  }

  rt::Error execute(rt::BackendExecutionContext& context, rt::DelegateHandle* delegate,
                    rt::Span<rt::EValue*> args) const override try {
    auto* handle = static_cast<ProxyHandle*>(delegate);
    if (handle == nullptr) return rt::Error::DelegateInvalidHandle;
    const auto entered_ns = handle->engine->may_measure() ? monotonic_ns() : 0;
    const std::lock_guard lock(handle->mutex);
    handle->wrapped->arguments(&context, args);
    std::optional<TracerSink> sink;
#ifdef ET_EVENT_TRACER_ENABLED
    if (context.event_tracer() != nullptr) sink.emplace(context.event_tracer(), handle->metadata);
#endif
    try {
      handle->engine->call({}, {}, nullptr, sink ? &*sink : nullptr, entered_ns);
    } catch (...) {
      const auto error = fail("execute");
      const auto own = handle->wrapped->last_error();
      return own == rt::Error::Ok ? error : own;  // the backend's own code, where it is the one that failed
    }
    return rt::Error::Ok;
  } catch (...) {
    return fail("execute");
  }

  void destroy(rt::DelegateHandle* delegate) const override {
    std::unique_ptr<ProxyHandle> handle(static_cast<ProxyHandle*>(delegate));
  }

 private:
  rt::Error fail(const char* where) const noexcept { return delegate_failure(wrapper_.c_str(), where); }
  const rt::BackendInterface& backend_;
  const std::string id_;
  const std::string wrapper_;  // the registry keeps a pointer to it
};

struct Proxies {
  std::mutex mutex;
  std::deque<std::unique_ptr<ProxyBackend>> all;
};

// Never destroyed, as the registry never forgets a backend.
Proxies& all_proxies() {
  static Proxies* const instance = new Proxies;  // NOLINT
  return *instance;
}

}  // namespace

void wrap_backend(const std::string& backend, const std::string& wrapper) {
  if (backend.size() != wrapper.size() || backend.empty()) {
    throw Error::refused("wrapper", wrapper, "'" + wrapper + "'",
                         "give an id of " + std::to_string(backend.size()) + " characters, as '" + backend +
                             "' has: it takes that one's place in a copy of the program");
  }
  auto& known = all_proxies();
  const std::lock_guard lock(known.mutex);
  for (const auto& proxy : known.all) {
    if (proxy->wrapper() != wrapper) continue;
    if (proxy->id() == backend) return;
    throw Error::refused("wrapper", wrapper, "'" + wrapper + "'", "it already wraps " + proxy->id());
  }
  const auto* inner = rt::get_backend_class(backend.c_str());
  if (inner == nullptr) {
    throw Error(Code::not_found, "there is no backend '" + backend +
                                     "' to wrap in this process: load the library that brings it first");
  }
  if (rt::get_backend_class(wrapper.c_str()) != nullptr) {
    throw Error::refused("wrapper", wrapper, "'" + wrapper + "'", "a backend of that id is registered");
  }
  auto proxy = std::make_unique<ProxyBackend>(*inner, backend, wrapper);
  const auto error = rt::register_backend({proxy->wrapper().c_str(), proxy.get()});
  if (error != rt::Error::Ok) {
    throw Error(to_code(error), "executorch refused to register '" + wrapper + "': " +
                                    std::string(error_name(error)) + " (it takes 16 backends a process)");
  }
  known.all.push_back(std::move(proxy));
}

std::vector<std::pair<std::string, std::string>> proxies() {
  auto& known = all_proxies();
  const std::lock_guard lock(known.mutex);
  std::vector<std::pair<std::string, std::string>> out;
  out.reserve(known.all.size());
  for (const auto& proxy : known.all) out.emplace_back(proxy->wrapper(), proxy->id());
  return out;
}

}  // namespace torchtrt_viz::et
