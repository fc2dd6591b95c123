#include "executorch/delegate.hpp"

#include <dlfcn.h>
#include <executorch/runtime/backend/interface.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/blob.hpp"
#include "core/clock.hpp"
#include "core/config.hpp"
#include "core/instrumented_engine.hpp"
#include "executorch/delegate_number.hpp"
#include "executorch/engine_factory.hpp"
#include "executorch/load_options.hpp"
#include "executorch/tensor_args.hpp"
#include "executorch/tracer_sink.hpp"
#include "host_engine/et_types.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

struct Handle {
  std::unique_ptr<DelegateNumber> number;
  std::unique_ptr<InstrumentedEngine> engine;
  std::string metadata;  // of the delegate's event: what is the same for every call, an open JSON object
};

// The runtime is C: nothing is thrown through it.
rt::Error fail(const char* where) noexcept { return delegate_failure(kBackendId, where); }

class TensorRTBackend final : public rt::BackendInterface {
 public:
  bool is_available() const override { return true; }

  rt::Result<rt::DelegateHandle*> init(rt::BackendInitContext& context, rt::FreeableBuffer* processed,
                                       rt::ArrayRef<rt::CompileSpec> specs) const override try {
    InstrumentedEngine::Options options;
    options.load = read_load_options(context);
    options.specs = read_compile_specs(specs);
    const std::span bytes(static_cast<const std::byte*>(processed->data()), processed->size());
    const auto blob = parse_blob(bytes);
    auto engine = make_engine(blob);

    auto handle = std::make_unique<Handle>();
    const std::string method = context.get_method_name() == nullptr ? "" : context.get_method_name();
    handle->number = std::make_unique<DelegateNumber>(context.get_runtime_allocator(), method);
    EngineIdentity identity;
    identity.content_hash = blob.content_hash;
    identity.name = blob.engine_name;
    identity.method = method;
    identity.delegate_index = handle->number->value();
    identity.runtime = engine->runtime();
    identity.owner = "executorch";
    handle->engine = InstrumentedEngine::create(std::move(engine), std::move(identity), std::move(options));

    const auto info = handle->engine->entry()->info();
    handle->metadata = delegate_metadata(info);
    // The host engine runs out of the blob; TensorRT has made its own copy of the plan.
    if (blob.kind == PayloadKind::tensorrt) processed->Free();
    return static_cast<rt::DelegateHandle*>(handle.release());
  } catch (...) {
    return fail("init");
  }

  rt::Error execute(rt::BackendExecutionContext& context, rt::DelegateHandle* delegate,
                    rt::Span<rt::EValue*> args) const override try {
    auto* handle = static_cast<Handle*>(delegate);
    if (handle == nullptr) return rt::Error::DelegateInvalidHandle;
    auto& engine = *handle->engine;
    const auto entered_ns = engine.may_measure() ? monotonic_ns() : 0;
    TensorArgs tensors;
    tensors.wrap(args, engine.engine().inputs().size(), engine.engine().outputs().size());
    std::optional<TracerSink> sink;
#ifdef ET_EVENT_TRACER_ENABLED
    if (auto* tracer = context.event_tracer(); tracer != nullptr) sink.emplace(tracer, handle->metadata);
#else
    (void)context;
#endif
    engine.call(tensors.inputs(), tensors.outputs(), nullptr, sink ? &*sink : nullptr, entered_ns);
    tensors.unwrap();
    return rt::Error::Ok;
  } catch (...) {
    return fail("execute");
  }

  void destroy(rt::DelegateHandle* delegate) const override {
    std::unique_ptr<Handle> handle(static_cast<Handle*>(delegate));
  }

  // executorch::runtime::set_option("TensorRTBackend", ...): the process-wide configuration, for programs
  // that are loaded by a runtime without load-time options. A level switches execution profiling on, "off"
  // off.
  rt::Error set_option(rt::BackendOptionContext&, const rt::Span<rt::BackendOption>& options) override try {
    const rt::BackendInitContext view(nullptr, nullptr, nullptr, nullptr,
                                      rt::Span<const rt::BackendOption>(options.data(), options.size()));
    const auto set = read_load_options(view);
    ConfigChange change;
    if (set.level) {
      change.execution = *set.level != Level::off;
      change.level = level_name(*set.level);
    }
    if (set.format) change.format = format_name(*set.format);
    change.path_prefix = set.path_prefix;
    change_config(change);
    return rt::Error::Ok;
  } catch (...) {
    return fail("set_option");
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
