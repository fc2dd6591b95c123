// The delegate, called by the runtime, in a program that the caller of the tests exported:
// TORCHTRT_VIZ_TEST_PROGRAM names a .pte with one TensorRTBackend region that takes one float tensor.
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "core/config.hpp"
#include "core/engine_registry.hpp"
#include "executorch/delegate.hpp"
#include "executorch/event_log.hpp"
#include "executorch/last_error.hpp"
#include "executorch/ticks.hpp"
#include "tests/check.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;
using executorch::extension::Module;

const char* program_path() { return std::getenv("TORCHTRT_VIZ_TEST_PROGRAM"); }

// Options as a loader hands them over.
class Options {
 public:
  Options& set(const char* key, const char* value) {
    rt::BackendOption option{};
    std::strncpy(option.key, key, sizeof option.key - 1);
    std::array<char, rt::kMaxOptionValueLength> text{};
    std::strncpy(text.data(), value, text.size() - 1);
    option.value = text;
    options_.push_back(option);
    return *this;
  }
  rt::LoadBackendOptionsMap map() {
    rt::LoadBackendOptionsMap out;
    CHECK(out.set_options(kBackendId, rt::Span<rt::BackendOption>(options_.data(), options_.size())) ==
          rt::Error::Ok);
    return out;
  }

 private:
  std::vector<rt::BackendOption> options_;
};

struct Loaded {
  std::unique_ptr<Module> module;
  rt::Error error = rt::Error::Ok;
  std::shared_ptr<EngineEntry> engine;

  Loaded(const char* level, rt::EventTracer* tracer) {
    module = std::make_unique<Module>(program_path(), Module::LoadMode::Mmap);
    Options options;
    if (level != nullptr) options.set("torchtrt_profile_level", level);
    EngineLoadScope scope;
    error = module->load(options.map());
    if (error == rt::Error::Ok) error = module->load_method("forward", nullptr, tracer);
    if (!scope.engines().empty()) engine = scope.engines().front();
  }

  std::vector<float> run() {
    const auto meta = module->method_meta("forward");
    const auto info = meta->input_tensor_meta(0);
    std::vector<executorch::aten::SizesType> sizes(info->sizes().begin(), info->sizes().end());
    const auto input = executorch::extension::full(sizes, 0.5, executorch::aten::ScalarType::Float);
    const auto result = module->execute("forward", {rt::EValue(*input)});
    CHECK(result.ok());
    if (!result.ok()) return {};
    const auto& tensor = (*result)[0].toTensor();
    const auto* data = tensor.const_data_ptr<float>();
    return {data, data + tensor.numel()};
  }
};

std::map<std::string, int> counts_of(const EventLog& log) {
  const auto columns = log.snapshot();
  std::map<std::string, int> out;
  for (const auto& event : columns.events) {
    const auto& delegate = columns.texts[event.delegate_name];
    out[delegate.empty() ? columns.texts[event.name] : delegate] += 1;
  }
  return out;
}

const char* const kPhases[] = {
    "torchtrt.delegate",     "torchtrt.input_binding",  "torchtrt.shape_inference", "torchtrt.output_binding",
    "torchtrt.enqueue_host", "torchtrt.output_staging", "torchtrt.synchronize"};

TEST(the_delegate_is_registered) {
  CHECK(delegate_registration().registered);
  CHECK_EQUAL(torchtrt_viz_delegate_status(), 0);
  CHECK(rt::get_backend_class(kBackendId) != nullptr);
}

TEST(ticks_and_our_clock_convert_both_ways) {
  for (std::int64_t ns : {std::int64_t{5'000'000'000'000}, monotonic_of(0), monotonic_of(123456789)}) {
    CHECK_EQUAL(monotonic_of(ticks_of(ns)), std::max(ns, monotonic_of(0)));
  }
  const auto anchor = clock_anchor();
  CHECK(monotonic_of(anchor.ticks_before) <= anchor.monotonic_ns + 200);
  CHECK(monotonic_of(anchor.ticks_after) + 200 >= anchor.monotonic_ns);
}

TEST(levels_emit_exactly_their_events) {
  if (program_path() == nullptr) return;
  std::vector<float> first;
  for (const char* level : {"off", "delegate", "phases", "layers"}) {
    EventLog log;
    Loaded loaded(level, &log);
    CHECK(loaded.error == rt::Error::Ok);
    const auto output = loaded.run();
    if (first.empty()) first = output;
    CHECK(std::memcmp(output.data(), first.data(), output.size() * sizeof(float)) == 0);
    const auto counts = counts_of(log);
    const auto count = [&](const std::string& name) {
      const auto found = counts.find(name);
      return found == counts.end() ? 0 : found->second;
    };
    const bool off = std::strcmp(level, "off") == 0;
    const bool phases = std::strcmp(level, "phases") == 0 || std::strcmp(level, "layers") == 0;
    int layers = 0;
    for (const auto& [name, n] : counts) layers += name.starts_with("layer_") ? n : 0;
    for (const char* name : kPhases) {
      const bool whole = std::strcmp(name, "torchtrt.delegate") == 0;
      CHECK_EQUAL(count(name), (whole ? !off : phases) ? 1 : 0);
    }
    CHECK_EQUAL(layers > 0, std::strcmp(level, "layers") == 0);
    CHECK_EQUAL(loaded.engine->info().attachments, layers > 0 ? 1 : 0);
    CHECK_EQUAL(loaded.engine->info().contexts, 1);
    CHECK_EQUAL(count("DELEGATE_CALL"), 1);
  }
}

TEST(layers_fit_into_enqueue_and_phases_into_the_delegate) {
  if (program_path() == nullptr) return;
  EventLog log;
  Loaded loaded("layers", &log);
  for (int i = 0; i < 20; ++i) (void)loaded.run();
  const auto columns = log.snapshot();
  std::uint64_t layers = 0;
  std::map<std::string, EventColumns::Event> current;
  for (const auto& event : columns.events) {
    const auto& delegate = columns.texts[event.delegate_name];
    const auto& name = delegate.empty() ? columns.texts[event.name] : delegate;
    if (name.starts_with("layer_")) layers += event.end - event.start;
    current[name] = event;
    if (name == "torchtrt.enqueue_host") {
      CHECK(layers > 0);
      CHECK(layers <= event.end - event.start);
      layers = 0;
    }
    if (name != "DELEGATE_CALL") continue;
    const auto& whole = current["torchtrt.delegate"];
    CHECK(whole.start >= event.start);
    CHECK(whole.end <= event.end);
    for (const char* phase : kPhases) {
      CHECK(current[phase].start >= whole.start);
      CHECK(current[phase].end <= whole.end);
    }
  }
}

TEST(the_runtimes_own_tracer_gets_the_same_events) {
  if (program_path() == nullptr) return;
  executorch::etdump::ETDumpGen tracer;
  Loaded loaded("layers", &tracer);
  (void)loaded.run();
  const auto result = tracer.get_etdump_data();
  const std::unique_ptr<void, decltype(&std::free)> owner(result.buf, &std::free);
  const std::string bytes(static_cast<const char*>(result.buf), result.size);
  for (const char* name : kPhases) CHECK(bytes.find(name) != std::string::npos);
  CHECK(bytes.find("layer_0000_") != std::string::npos);
  CHECK(bytes.find("\"engine_runtime\":\"host\"") != std::string::npos);
}

TEST(layers_can_be_switched_on_after_loading) {
  if (program_path() == nullptr) return;
  reset_config();
  EventLog log;
  Loaded loaded(nullptr, &log);
  const auto before = loaded.run();
  CHECK_EQUAL(counts_of(log).count("torchtrt.delegate"), std::size_t{0});
  change_config({.execution = true, .level = "layers", .format = "etdump"});
  for (int i = 0; i < 3; ++i) CHECK(loaded.run() == before);
  CHECK_EQUAL(counts_of(log)["torchtrt.delegate"], 3);
  CHECK(counts_of(log)["torchtrt.enqueue_host"] == 3);
  CHECK_EQUAL(loaded.engine->info().attachments, 1);
  CHECK_EQUAL(loaded.engine->info().contexts, 2);
  change_config({.execution = false});
  CHECK(loaded.run() == before);
  CHECK_EQUAL(counts_of(log)["torchtrt.delegate"], 3);
  reset_config();
}

TEST(the_runtimes_set_option_is_the_process_switch) {
  reset_config();
  std::array<char, rt::kMaxOptionValueLength> text{};
  std::strcpy(text.data(), "phases");
  rt::BackendOption option{};
  std::strcpy(option.key, "torchtrt_profile_level");
  option.value = text;
  CHECK(rt::set_option(kBackendId, rt::Span<rt::BackendOption>(&option, 1)) == rt::Error::Ok);
  CHECK(config_snapshot().execution);
  CHECK_EQUAL(config_snapshot().level, Level::phases);
  std::strcpy(text.data(), "all");
  option.value = text;
  CHECK(rt::set_option(kBackendId, rt::Span<rt::BackendOption>(&option, 1)) == rt::Error::InvalidArgument);
  CHECK_EQUAL(config_snapshot().level, Level::phases);
  const auto reason = take_last_error();
  CHECK(reason && test::says(*reason, "'all'"));
  reset_config();
}

TEST(two_programs_run_from_two_threads) {
  if (program_path() == nullptr) return;
  EventLog logs[2];
  Loaded a("layers", &logs[0]), b("layers", &logs[1]);
  const auto expected = a.run();
  (void)b.run();
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) CHECK(b.run() == expected);
  });
  for (int i = 0; i < 50; ++i) CHECK(a.run() == expected);
  other.join();
  for (auto& log : logs) CHECK_EQUAL(counts_of(log)["torchtrt.delegate"], 51);
  CHECK(a.engine->info().engine_id == b.engine->info().engine_id);
  CHECK(a.engine->info().instance != b.engine->info().instance);
}

TEST(wrong_levels_fail_the_load_with_a_reason) {
  if (program_path() == nullptr) return;
  Loaded loaded("everything", nullptr);
  CHECK(loaded.error == rt::Error::InvalidArgument);
  const auto reason = take_last_error();
  CHECK(reason.has_value());
  CHECK(reason && test::says(*reason, "off, delegate, phases or layers"));
}

}  // namespace
}  // namespace torchtrt_viz::et
