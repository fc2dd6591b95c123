#include "executorch/delegate.hpp"

#include <dlfcn.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/platform/log.h>

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "core/clock.hpp"
#include "core/config.hpp"
#include "core/instrumented_engine.hpp"
#include "core/json_text.hpp"
#include "executorch/blob.hpp"
#include "executorch/engine_factory.hpp"
#include "executorch/last_error.hpp"
#include "executorch/load_options.hpp"
#include "executorch/tensor_args.hpp"
#include "executorch/ticks.hpp"
#include "host_engine/et_types.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

// Delegates of one method are numbered in the order in which the method sets them up. The runtime does not
// say which one it is at, but those of a method share its allocator, and they go together when it goes.
class DelegateNumbers {
 public:
  using Key = std::pair<const void*, std::string>;
  std::int64_t take(const Key& key) {
    const std::lock_guard lock(mutex_);
    return living_[key]++;
  }
  void give_back(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = living_.find(key);
    if (found != living_.end() && --found->second == 0) living_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::int64_t> living_;
};

DelegateNumbers& delegate_numbers() {
  static DelegateNumbers* const instance = new DelegateNumbers;  // NOLINT: programs may outlive statics
  return *instance;
}

class NumberLease {
 public:
  explicit NumberLease(DelegateNumbers::Key key)
      : key_(std::move(key)), number_(delegate_numbers().take(key_)) {}
  ~NumberLease() { delegate_numbers().give_back(key_); }
  NumberLease(const NumberLease&) = delete;
  NumberLease& operator=(const NumberLease&) = delete;
  std::int64_t number() const noexcept { return number_; }

 private:
  DelegateNumbers::Key key_;
  std::int64_t number_;
};

struct Handle {
  std::unique_ptr<NumberLease> number;
  std::unique_ptr<InstrumentedEngine> engine;
  std::string metadata;  // of the delegate's event: what is the same for every call, an open JSON object
};

rt::Error fail(const char* where, Status status) {
  ET_LOG(Error, "%s %s: %s", kBackendId, where, status.message.c_str());
  const auto error = to_error(status.code);
  set_last_error(std::move(status));
  return error;
}

// Writes a call's spans to the runtime's tracer. The identifiers are strings, so the integer one is "unset":
// the tracer takes exactly one of them.
class TracerSink final : public ReportSink {
 public:
  TracerSink(rt::EventTracer* tracer, const std::string& metadata) : tracer_(tracer), metadata_(metadata) {}

  // A tracer that wants no operators gets no layers: those are operators.
  Level limit() const override {
    const bool operators =
        tracer_->event_tracer_profiling_level() > rt::EventTracerProfilingLevel::kProfileMethodOnly;
    return operators ? Level::layers : Level::phases;
  }

  void report(const CallReport& report) override {
    const bool layers = limit() == Level::layers;
    std::string text;
    for (const auto& span : report.spans) {
      text.clear();
      const char* name = nullptr;
      if (span.layer >= 0) {
        if (!layers) continue;
        const auto& layer = report.layers[span.layer];
        name = layer.id.c_str();
        text = layer.metadata;
        text.append(",\"timing\":\"").append(kTimingNames[static_cast<std::size_t>(span.timing)]);
        text.append(span.on_device ? "\",\"domain\":\"gpu\"" : "\",\"domain\":\"host\"");
        if (span.call != report.call) text.append(",\"call\":").append(std::to_string(span.call));
        text += '}';
      } else {
        name = name_text(span.name).data();  // of a std::string: ends with a NUL
        if (span.kind == SpanKind::delegate) text = call_metadata(report);
      }
      rt::event_tracer_log_profiling_delegate(
          tracer_, name, static_cast<rt::DebugHandle>(rt::kUnsetDelegateDebugIntId), ticks_of(span.start_ns),
          ticks_of(span.end_ns), text.empty() ? nullptr : text.data(), text.size());
    }
  }

 private:
  std::string call_metadata(const CallReport& report) const {
    std::string text = metadata_;
    text.append(",\"call\":").append(std::to_string(report.call));
    text.append(",\"level\":\"").append(level_name(report.engine.level));
    text.append("\",\"level_source\":\"").append(level_source_name(report.engine.level_source));
    text.append(report.status.ok() ? "\",\"status\":\"ok\"" : "\",\"status\":\"failed\"");
    if (!report.status.ok()) {
      text += ",\"error\":";
      append_json_string(text, report.status.message);
    }
    return text + "}";
  }

  rt::EventTracer* tracer_;
  const std::string& metadata_;
};

class TensorRTBackend final : public rt::BackendInterface {
 public:
  bool is_available() const override { return true; }

  rt::Result<rt::DelegateHandle*> init(rt::BackendInitContext& context, rt::FreeableBuffer* processed,
                                       rt::ArrayRef<rt::CompileSpec> specs) const override try {
    InstrumentedEngine::Options options;
    if (auto status = read_load_options(context, options.load); !status.ok())
      return fail("init", std::move(status));
    if (auto status = read_compile_specs(specs, options.specs); !status.ok())
      return fail("init", std::move(status));
    EngineBlob blob;
    const std::span bytes(static_cast<const std::byte*>(processed->data()), processed->size());
    if (auto status = parse_blob(bytes, blob); !status.ok()) return fail("init", std::move(status));
    std::unique_ptr<Engine> engine;
    if (auto status = make_engine(blob, engine); !status.ok()) return fail("init", std::move(status));

    auto handle = std::make_unique<Handle>();
    const std::string method = context.get_method_name() == nullptr ? "" : context.get_method_name();
    handle->number =
        std::make_unique<NumberLease>(DelegateNumbers::Key(context.get_runtime_allocator(), method));
    EngineIdentity identity;
    identity.content_hash = blob.content_hash;
    identity.name = blob.engine_name;
    identity.method = method;
    identity.delegate_index = handle->number->number();
    identity.runtime = engine->runtime();
    identity.owner = "executorch";
    auto status = InstrumentedEngine::create(std::move(engine), std::move(identity), std::move(options),
                                             handle->engine);
    if (!status.ok()) return fail("init", std::move(status));

    const auto info = handle->engine->entry()->info();
    JsonObject(handle->metadata)
        .integer("schema", 1)
        .text("method", method)
        .text("engine", info.engine_id)
        .text("engine_name", info.identity.name)
        .text("engine_runtime", info.identity.runtime)
        .integer("instance", info.instance);
    // The host engine runs out of the blob; TensorRT has made its own copy of the plan.
    if (blob.kind == PayloadKind::tensorrt) processed->Free();
    return static_cast<rt::DelegateHandle*>(handle.release());
  } catch (const std::exception& error) {
    return fail("init", Status::error(Code::internal, error.what()));
  }

  rt::Error execute(rt::BackendExecutionContext& context, rt::DelegateHandle* delegate,
                    rt::Span<rt::EValue*> args) const override try {
    auto* handle = static_cast<Handle*>(delegate);
    if (handle == nullptr) return rt::Error::DelegateInvalidHandle;
    auto& engine = *handle->engine;
    const auto entered_ns = engine.may_measure() ? monotonic_ns() : 0;
    TensorArgs tensors;
    auto status = tensors.wrap(args, engine.engine().inputs().size(), engine.engine().outputs().size());
    if (!status.ok()) return fail("execute", std::move(status));
#ifdef ET_EVENT_TRACER_ENABLED
    if (auto* tracer = context.event_tracer(); tracer != nullptr) {
      TracerSink sink(tracer, handle->metadata);
      status = engine.call(tensors.inputs(), tensors.outputs(), nullptr, &sink, entered_ns);
    } else {
      status = engine.call(tensors.inputs(), tensors.outputs(), nullptr, nullptr, entered_ns);
    }
#else
    (void)context;
    status = engine.call(tensors.inputs(), tensors.outputs(), nullptr, nullptr, entered_ns);
#endif
    if (!status.ok()) return fail("execute", std::move(status));
    tensors.unwrap();
    return rt::Error::Ok;
  } catch (const std::exception& error) {
    return fail("execute", Status::error(Code::internal, error.what()));
  }

  void destroy(rt::DelegateHandle* delegate) const override {
    std::unique_ptr<Handle> handle(static_cast<Handle*>(delegate));
  }

  // executorch::runtime::set_option("TensorRTBackend", ...): the process-wide configuration, for programs
  // that are loaded by a runtime without load-time options. A level switches execution profiling on, "off"
  // off.
  rt::Error set_option(rt::BackendOptionContext&, const rt::Span<rt::BackendOption>& options) override try {
    OptionSet set;
    const rt::BackendInitContext view(nullptr, nullptr, nullptr, nullptr,
                                      rt::Span<const rt::BackendOption>(options.data(), options.size()));
    if (auto status = read_load_options(view, set); !status.ok())
      return fail("set_option", std::move(status));
    ConfigChange change;
    if (set.level) {
      change.execution = *set.level != Level::off;
      change.level = level_name(*set.level);
    }
    if (set.format) change.format = format_name(*set.format);
    change.path_prefix = set.path_prefix;
    if (auto status = change_config(change); !status.ok()) return fail("set_option", std::move(status));
    return rt::Error::Ok;
  } catch (const std::exception& error) {
    return fail("set_option", Status::error(Code::internal, error.what()));
  }
};

std::string library_of(const void* object) {
  // The first word of an object with virtual functions points into the library that defines its class.
  const void* table = *static_cast<const void* const*>(object);
  Dl_info info;
  return dladdr(table, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "another library";
}

Registration register_delegate() {
  Registration out;
  static TensorRTBackend backend;
  if (const auto* other = rt::get_backend_class(kBackendId); other != nullptr) {
    out.detail =
        std::string(kBackendId) + " is already registered by " + library_of(other) +
        ": its delegates run without our events; wrap them with a proxy, or do not load that library here";
    return out;
  }
  const auto error = rt::register_backend({kBackendId, &backend});
  out.registered = error == rt::Error::Ok;
  out.detail = out.registered ? "registered"
                              : "executorch refused the registration: " + std::string(error_name(error));
  return out;
}

const Registration kRegistration = register_delegate();

}  // namespace

const Registration& delegate_registration() { return kRegistration; }

}  // namespace torchtrt_viz::et

extern "C" int torchtrt_viz_delegate_status(void) {
  return torchtrt_viz::et::delegate_registration().registered ? 0 : 1;
}

extern "C" const char* torchtrt_viz_delegate_detail(void) {
  return torchtrt_viz::et::delegate_registration().detail.c_str();
}
