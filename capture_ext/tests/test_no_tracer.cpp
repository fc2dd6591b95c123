// The delegate compiled without ET_EVENT_TRACER_ENABLED: it runs, and emits nothing, whatever the level.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "executorch/delegate.hpp"
#include "tests/check.hpp"

#ifdef ET_EVENT_TRACER_ENABLED
#error "this test is of a build without ET_EVENT_TRACER_ENABLED"
#endif

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;
using executorch::extension::Module;

// Counts what delegates log.
class Counter final : public rt::EventTracer {
 public:
  int delegate_events = 0;
  int other_events = 0;

 private:
  using Entry = rt::EventTracerEntry;
  void create_event_block(const char*) override {}
  Entry start_profiling(const char*, rt::ChainID, rt::DebugHandle) override { return {}; }
  void end_profiling(Entry) override { ++other_events; }
  Entry start_profiling_delegate(const char* name, rt::DelegateDebugIntId) override {
    count(name);
    return {};
  }
  void end_profiling_delegate(Entry, const void*, std::size_t) override {}
  void log_profiling_delegate(const char* name, rt::DelegateDebugIntId, et_timestamp_t, et_timestamp_t,
                              const void*, std::size_t) override {
    count(name);
  }
  void count(const char* name) {
    if (name != nullptr && (std::strncmp(name, "torchtrt.", 9) == 0 || std::strncmp(name, "layer_", 6) == 0))
      ++delegate_events;
  }
  void track_allocation(rt::AllocatorID, std::size_t) override {}
  rt::AllocatorID track_allocator(const char*) override { return 0; }
  rt::Result<bool> log_evalue(const rt::EValue&, rt::LoggedEValueType) override { return false; }
  rt::Result<bool> log_intermediate_output_delegate(const char*, rt::DelegateDebugIntId,
                                                    const executorch::aten::Tensor&) override {
    return false;
  }
  rt::Result<bool> log_intermediate_output_delegate(const char*, rt::DelegateDebugIntId,
                                                    rt::ArrayRef<executorch::aten::Tensor>) override {
    return false;
  }
  rt::Result<bool> log_intermediate_output_delegate(const char*, rt::DelegateDebugIntId,
                                                    const int&) override {
    return false;
  }
  rt::Result<bool> log_intermediate_output_delegate(const char*, rt::DelegateDebugIntId,
                                                    const bool&) override {
    return false;
  }
  rt::Result<bool> log_intermediate_output_delegate(const char*, rt::DelegateDebugIntId,
                                                    const double&) override {
    return false;
  }
  void set_delegation_intermediate_output_filter(rt::EventTracerFilterBase*) override {}
};

TEST(profiling_disabled_builds_remain_available) {
  CHECK(delegate_registration().registered);
  const char* path = std::getenv("TORCHTRT_VIZ_TEST_PROGRAM");
  if (path == nullptr) return;
  Counter tracer;
  Module module(path, Module::LoadMode::Mmap);
  rt::BackendOption option{};
  std::strcpy(option.key, "torchtrt_profile_level");
  std::array<char, rt::kMaxOptionValueLength> text{};
  std::strcpy(text.data(), "layers");
  option.value = text;
  rt::LoadBackendOptionsMap map;
  CHECK(map.set_options(kBackendId, rt::Span<rt::BackendOption>(&option, 1)) == rt::Error::Ok);
  CHECK(module.load(map) == rt::Error::Ok);
  CHECK(module.load_method("forward", nullptr, &tracer) == rt::Error::Ok);
  const auto meta = module.method_meta("forward");
  const auto info = meta->input_tensor_meta(0);
  std::vector<executorch::aten::SizesType> sizes(info->sizes().begin(), info->sizes().end());
  const auto input = executorch::extension::full(sizes, 0.5, executorch::aten::ScalarType::Float);
  CHECK(module.execute("forward", {rt::EValue(*input)}).ok());
  CHECK_EQUAL(tracer.delegate_events, 0);
  CHECK(tracer.other_events > 0);  // of the runtime's library, which has the tracer
}

}  // namespace
}  // namespace torchtrt_viz::et
