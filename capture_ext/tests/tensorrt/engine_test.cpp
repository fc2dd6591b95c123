// The TensorRT engine on the simulated device: what it computes, that it never waits longer than without
// profiling, and that its device times are the device's. Usage: engine_test NVINFER_STANDIN CUDART_STANDIN
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/config.hpp"
#include "core/instrumented_engine.hpp"
#include "standins/device.hpp"
#include "tensorrt/tensorrt_engine.hpp"
#include "tests/failure_of.hpp"

namespace {

using namespace torchtrt_viz;
using standins::standins_counts;
using standins::standins_faults;
using standins::standins_host_now;

int failures = 0;
LibraryNames libraries;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      ++failures;                                                                    \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                                \
  } while (false)
#define CHECK_HAS(text, part)                                                                     \
  do {                                                                                            \
    if ((text).find(part) == std::string::npos) {                                                 \
      ++failures;                                                                                 \
      std::fprintf(stderr, "%s:%d: '%s' lacks '%s'\n", __FILE__, __LINE__, (text).c_str(), part); \
    }                                                                                             \
  } while (false)

constexpr std::int64_t kConvNs = 600'000;
constexpr std::int64_t kReluNs = 400'000;
const std::string kPlan =
    "ftrt\ninput x float32 -1x4\noutput y float32 -1x4\nlayer conv 600000\nlayer relu 200000\nlayer relu "
    "200000\n";
const Level kLevels[] = {Level::off, Level::delegate, Level::phases, Level::layers};

struct Sink final : ReportSink {
  Level limit() const override { return Level::layers; }
  void report(const CallReport& report) override {
    spans.insert(spans.end(), report.spans.begin(), report.spans.end());
  }
  std::vector<SpanRecord> spans;
  std::vector<SpanRecord> device(SpanKind kind) const {
    std::vector<SpanRecord> out;
    for (const auto& span : spans) {
      if (span.on_device && span.kind == kind) out.push_back(span);
    }
    return out;
  }
};

std::unique_ptr<Engine> make_raw(const std::string& plan, std::vector<Alias> aliases = {}) {
  TensorRtSetup setup;
  setup.plan = std::as_bytes(std::span(plan));
  setup.aliases = std::move(aliases);
  setup.libraries = libraries;
  return TensorRtEngine::make(setup);
}

std::unique_ptr<InstrumentedEngine> make(const std::string& plan, Level level,
                                         std::vector<Alias> aliases = {}) {
  InstrumentedEngine::Options options;
  options.load.level = level;
  return InstrumentedEngine::create(make_raw(plan, std::move(aliases)),
                                    {1, "engine", "forward", 0, "tensorrt", "executorch"}, options);
}

// The words of what `work` throws.
template <typename Work>
std::string words_of(Work&& work) {
  return test::failure_of(work).what();
}

TensorView input(std::vector<float>& data, std::int64_t rows, DeviceKind device) {
  TensorView view;
  view.data = data.data();
  view.device = device;
  view.sizes = Dims(std::array<std::int64_t, 2>{rows, 4});
  return view;
}

OutputView output(std::vector<float>& data, DeviceKind device) {
  OutputView view;
  view.data = data.data();
  view.device = device;
  view.capacity = data.size() * sizeof(float);
  return view;
}

void results_from_host_memory() {
  std::int64_t waits_when_off = -1;
  for (const Level level : kLevels) {
    auto engine = make(kPlan, level);
    Sink sink;
    for (const std::int64_t rows : {2, 1, 5}) {
      std::vector<float> x(static_cast<std::size_t>(rows) * 4), y(64, -1.0f);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
      auto in = input(x, rows, DeviceKind::host);
      auto out = output(y, DeviceKind::host);
      const std::int64_t before = standins_counts()->waits();
      engine->call({&in, 1}, {&out, 1}, nullptr, &sink);
      const std::int64_t waits = standins_counts()->waits() - before;
      if (waits_when_off < 0) waits_when_off = waits;
      CHECK(waits == waits_when_off);
      CHECK(waits == 1);
      CHECK(out.sizes == Dims(std::array<std::int64_t, 2>{rows, 4}));
      for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == 2 * x[i] + 1);
      CHECK(y[x.size()] == -1.0f);
    }
    const auto phases = sink.device(SpanKind::phase);
    const auto layers = sink.device(SpanKind::layer);
    CHECK(phases.size() == (level >= Level::phases ? 3U : 0U));
    for (const auto& span : phases) {
      CHECK(span.end_ns - span.start_ns == kConvNs + kReluNs);
      CHECK(name_text(span.name) == "torchtrt.enqueue_gpu" && span.timing == Timing::device);
    }
    if (level == Level::layers) {
      CHECK(layers.size() == 9);
      CHECK(layers[0].end_ns - layers[0].start_ns == kConvNs);
      // layers of one name stay apart
      CHECK(engine->engine().layers().rows().size() == 3);
      CHECK(engine->engine().layers()[1].id == "relu");
      CHECK(engine->engine().layers()[2].id == "relu#1");
      CHECK(engine->engine().attachments() == 1 && engine->engine().contexts() == 1);
    } else {
      CHECK(layers.empty());
      CHECK(engine->engine().attachments() == 0);
    }
  }
}

// 1 ms of device work, everything on the device, a stream of the caller's.
void calls_stay_asynchronous() {
  const auto cuda = Libraries::open(libraries);
  std::int64_t waits_when_off = -1;
  for (const Level level : kLevels) {
    Stream stream = make_stream(cuda);
    auto engine = make(kPlan, level);
    Sink sink;
    std::vector<float> x(8, 3.0f), y(8, -1.0f);
    std::int64_t waits = 0;
    for (int call = 0; call < 3; ++call) {
      std::fill(y.begin(), y.end(), -1.0f);
      auto in = input(x, 2, DeviceKind::cuda);
      auto out = output(y, DeviceKind::cuda);
      const std::int64_t waits_before = standins_counts()->waits();
      const std::int64_t before = standins_host_now();
      engine->call({&in, 1}, {&out, 1}, stream.get(), &sink);
      // the second call may wait for the first (the bindings are reused): let the device finish in between
      CHECK(standins_host_now() - before < 50'000);
      CHECK(y[0] == -1.0f);  // still in flight
      waits += standins_counts()->waits() - waits_before;
      standins::standins_host_advance(2'000'000);
      CHECK(y[0] == 7.0f);
    }
    if (waits_when_off < 0) waits_when_off = waits;
    CHECK(waits == waits_when_off);
    const auto phases = sink.device(SpanKind::phase);
    // the last call's times come when somebody waits for it
    CHECK(phases.size() == (level >= Level::phases ? 2U : 0U));
    for (std::size_t i = 0; i < phases.size(); ++i) {
      CHECK(phases[i].end_ns - phases[i].start_ns == kConvNs + kReluNs);
      CHECK(phases[i].call == i);
    }
    CHECK(sink.device(SpanKind::layer).size() == (level == Level::layers ? 6U : 0U));
    if (level == Level::layers) {
      std::int64_t sum = 0;
      for (const auto& span : sink.device(SpanKind::layer)) sum += span.end_ns - span.start_ns;
      CHECK(sum == 2 * (kConvNs + kReluNs));
    }
  }
}

// torch's default stream: what was put there before is read, what comes after reads the results, and nobody
// waits.
void the_default_stream_is_ordered_and_stays_asynchronous() {
  const auto opened = Libraries::open(libraries);
  const CudaApi& cuda = opened->cuda();
  std::int64_t waits_when_off = -1;
  for (const Level level : kLevels) {
    auto engine = make(kPlan, level);
    Sink sink;
    std::vector<float> from(8, 3.0f), x(8, -1.0f), y(8, -1.0f), after(8, -1.0f);
    const std::size_t bytes = x.size() * sizeof(float);
    const std::int64_t waits = standins_counts()->waits();
    for (int call = 0; call < 2; ++call) {
      auto in = input(x, 2, DeviceKind::cuda);
      auto out = output(y, DeviceKind::cuda);
      CHECK(cuda.memcpy_async(x.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, nullptr) ==
            cudaSuccess);
      const std::int64_t before = standins_host_now();
      engine->call({&in, 1}, {&out, 1}, cudaStreamLegacy, &sink);
      CHECK(standins_host_now() - before < 50'000);
      CHECK(cuda.memcpy_async(after.data(), y.data(), bytes, cudaMemcpyDeviceToDevice, nullptr) ==
            cudaSuccess);
      CHECK(y[0] == (call == 0 ? -1.0f : 7.0f) && after[0] == (call == 0 ? -1.0f : 7.0f));
      standins::standins_host_advance(2'000'000);
      CHECK(y[7] == 7.0f && after[7] == 7.0f);
    }
    if (waits_when_off < 0) waits_when_off = standins_counts()->waits() - waits;
    CHECK(standins_counts()->waits() - waits == waits_when_off);
    CHECK(waits_when_off == 1);  // the second call, for the first
    for (const auto& span : sink.device(SpanKind::phase))
      CHECK(span.end_ns - span.start_ns == kConvNs + kReluNs);
  }
}

// The next call waits for the one in flight, as long as it takes and no longer, at every level alike.
void a_busy_engine_is_waited_for_once() {
  const auto cuda = Libraries::open(libraries);
  for (const Level level : kLevels) {
    Stream stream = make_stream(cuda);
    std::vector<float> x(8, 3.0f), y(8);  // outlive the work that uses them
    auto engine = make(kPlan, level);
    Sink sink;
    const std::int64_t begin = standins_host_now();
    const std::int64_t waits = standins_counts()->waits();
    for (int call = 0; call < 4; ++call) {
      auto in = input(x, 2, DeviceKind::cuda);
      auto out = output(y, DeviceKind::cuda);
      engine->call({&in, 1}, {&out, 1}, stream.get(), &sink);
    }
    CHECK(standins_counts()->waits() - waits == 3);
    const std::int64_t took = standins_host_now() - begin;
    CHECK(took >= 3 * (kConvNs + kReluNs) && took < 3 * (kConvNs + kReluNs) + 200'000);
  }
}

// Two threads call engines on streams of their own, a third changes what is recorded and applies it at once:
// a profiler that is taken away waits for the call in flight first.
void the_level_changes_under_running_engines() {
  const auto cuda = Libraries::open(libraries);
  reset_config();
  std::atomic<int> working{2};
  std::atomic<int> wrong{0};
  const auto work = [&](float value) {
    const Stream stream = make_stream(cuda);
    std::vector<float> x(8, value), y(8);
    Sink sink;
    try {
      auto engine = InstrumentedEngine::create(make_raw(kPlan),
                                               {1, "engine", "forward", 0, "tensorrt", "executorch"}, {});
      for (int call = 0; call < 300; ++call) {
        auto in = input(x, 2, DeviceKind::cuda);
        auto out = output(y, DeviceKind::cuda);
        engine->call({&in, 1}, {&out, 1}, stream.get(), &sink);
      }
    } catch (const Error&) {
      ++wrong;
    }
    for (const float result : y) wrong += result == 2 * value + 1 ? 0 : 1;
    // Exact times are for the tests with one thread: here the other thread moves the host's clock between the
    // first event and the launch, and an idle stream's time of the event is before that of the work.
    for (const auto& span : sink.device(SpanKind::phase)) {
      wrong += span.end_ns - span.start_ns >= kConvNs + kReluNs ? 0 : 1;
    }
    --working;
  };
  std::thread one(work, 3.0f), two(work, 4.0f);
  const char* levels[] = {"layers", "phases", "delegate", "layers"};
  for (int i = 0; working > 0; ++i) {
    change_config({.execution = i % 5 != 0, .level = levels[i % 4], .format = "etdump"});
    InstrumentedEngine::apply_everywhere();
  }
  one.join();
  two.join();
  CHECK(wrong == 0);
  reset_config();
}

void teardown_waits_and_gives_everything_back() {
  standins::standins_reset();
  const auto cuda = Libraries::open(libraries);
  for (const Level level : kLevels) {
    Stream stream = make_stream(cuda);
    std::vector<float> x(8, 3.0f), y(8, -1.0f);
    const std::int64_t waits = standins_counts()->waits();
    {
      auto engine = make(kPlan, level);
      auto in = input(x, 2, DeviceKind::cuda);
      auto out = output(y, DeviceKind::cuda);
      engine->call({&in, 1}, {&out, 1}, stream.get(), nullptr);
      CHECK(y[0] == -1.0f);
    }
    CHECK(y[0] == 7.0f);
    CHECK(standins_counts()->waits() - waits == 1);
  }
  CHECK(standins_counts()->live_allocations == 0);
  CHECK(standins_counts()->live_events == 0);
  CHECK(standins_counts()->live_streams == 0);
}

void a_recording_gets_the_last_call_at_teardown() {
  const auto cuda = Libraries::open(libraries);
  for (const Level level : {Level::phases, Level::layers}) {
    Stream stream = make_stream(cuda);
    std::vector<float> x(8, 3.0f), y(8);
    Recording recording(1000);
    {
      auto engine = make(kPlan, level);
      auto in = input(x, 2, DeviceKind::cuda);
      auto out = output(y, DeviceKind::cuda);
      engine->call({&in, 1}, {&out, 1}, stream.get(), nullptr);
    }
    const auto columns = recording.stop();
    int device_rows = 0;
    for (std::size_t i = 0; i < columns.call.size(); ++i) device_rows += columns.on_device[i];
    CHECK(device_rows == (level == Level::layers ? 1 + 3 : 1));
  }
}

// What a call of before left to be reported is no part of a recording that began after it.
void a_recording_has_no_device_time_of_earlier_calls() {
  const auto cuda = Libraries::open(libraries);
  Stream stream = make_stream(cuda);
  std::vector<float> x(8, 3.0f), y(8);
  auto engine = make(kPlan, Level::phases);
  const auto call = [&] {
    auto in = input(x, 2, DeviceKind::cuda);
    auto out = output(y, DeviceKind::cuda);
    engine->call({&in, 1}, {&out, 1}, stream.get(), nullptr);
  };
  for (int round = 0; round < 2; ++round) {
    Recording recording(1000);
    call();
    call();
    const auto columns = recording.stop();
    std::vector<std::int64_t> device;
    for (std::size_t i = 0; i < columns.call.size(); ++i) {
      if (columns.on_device[i]) device.push_back(columns.call[i]);
    }
    CHECK(device == std::vector<std::int64_t>{round * 2});
  }
}

void outputs_that_the_device_sizes() {
  auto engine = make("ftrt\ninput x float32 -1x4\noutput z float32 ?\nlayer nonzero 5000\n", Level::layers);
  for (const std::int64_t rows : {2, 6}) {
    std::vector<float> x(static_cast<std::size_t>(rows) * 4, 1.0f), z(16, -1.0f);
    auto in = input(x, rows, DeviceKind::host);
    auto out = output(z, DeviceKind::host);
    engine->call({&in, 1}, {&out, 1}, nullptr, nullptr);
    CHECK(out.sizes == Dims(std::array<std::int64_t, 1>{rows * 2}));
    CHECK(z[static_cast<std::size_t>(rows) * 2 - 1] == 3.0f);
  }
}

void aliased_storage_stays_the_callers() {
  const std::string plan = "ftrt\ninput cache float32 2x4\noutput cache_out float32 2x4\nlayer update 1000\n";
  for (const DeviceKind device : {DeviceKind::host, DeviceKind::cuda}) {
    auto engine = make(plan, Level::layers, {{0, 0}});
    std::vector<float> cache(8, 1.0f), seen(8, -1.0f);
    auto in = input(cache, 2, device);
    auto out = output(seen, device);
    engine->call({&in, 1}, {&out, 1}, nullptr, nullptr);
    CHECK(cache[0] == 3.0f && seen[0] == 3.0f);
    auto same = output(cache, device);
    engine->call({&in, 1}, {&same, 1}, nullptr, nullptr);
    CHECK(cache[0] == 7.0f && cache[7] == 7.0f);
  }
}

// A program's argument order need not be the plan's.
void bindings_follow_the_callers_order() {
  const std::string plan =
      "ftrt\ninput a float32 2x4\ninput b float32 3x4\noutput y float32 2x4\nlayer add 1000\n";
  TensorRtSetup setup;
  setup.plan = std::as_bytes(std::span(plan));
  setup.libraries = libraries;
  setup.inputs = {"b", "a"};
  setup.outputs = {"y"};
  const auto raw = TensorRtEngine::make(setup);
  CHECK(raw->inputs()[0].name == "b" && raw->inputs()[0].sizes[0] == 3 && raw->inputs()[1].name == "a");
  setup.inputs = {"b", "c"};
  CHECK_HAS(words_of([&] { TensorRtEngine::make(setup); }), "input 'c' is no binding of the plan");
  setup.inputs = {"b"};
  CHECK_HAS(words_of([&] { TensorRtEngine::make(setup); }), "has 2 input bindings, the program names 1");
}

void tensors_without_elements() {
  auto engine = make(kPlan, Level::layers);
  std::vector<float> x, y;
  auto in = input(x, 0, DeviceKind::host);
  auto out = output(y, DeviceKind::host);
  engine->call({&in, 1}, {&out, 1}, nullptr, nullptr);
  CHECK(out.sizes == Dims(std::array<std::int64_t, 2>{0, 4}));
}

// Copies of inputs, and no enqueue behind them that would be waited for.
void a_call_that_failed_leaves_no_copies_behind() {
  standins::standins_reset();
  for (const bool call_again : {false, true}) {
    auto engine = make(kPlan, Level::off);
    std::vector<float> x(8, 3.0f), y(8);
    auto in = input(x, 2, DeviceKind::host);
    auto out = output(y, DeviceKind::host);
    out.resize = [](OutputView&, const Dims&) { throw Error(Code::invalid_argument, "no room"); };
    const std::int64_t waits = standins_counts()->waits();
    CHECK_HAS(words_of([&] { engine->call({&in, 1}, {&out, 1}, nullptr, nullptr); }), "no room");
    CHECK(standins_counts()->waits() == waits);
    if (call_again) {
      std::vector<float> more(4000, 2.0f), room(4000);  // needs a larger buffer than the one being filled
      auto next = input(more, 1000, DeviceKind::host);
      auto result = output(room, DeviceKind::host);
      engine->call({&next, 1}, {&result, 1}, nullptr, nullptr);
      CHECK(room.back() == 5.0f);
      CHECK(standins_counts()->waits() == waits + 2);
    }
    engine.reset();
    CHECK(standins_counts()->waits() == waits + (call_again ? 2 : 1));
  }
  CHECK(standins_counts()->live_allocations == 0 && standins_counts()->live_streams == 0);
}

// After a failure the engine works on, and nothing is lost or leaked.
void failures_say_what_failed() {
  standins::standins_reset();
  {
    auto engine = make(kPlan, Level::layers);
    std::vector<float> x(8, 3.0f), y(8);
    const auto call = [&] {
      auto in = input(x, 2, DeviceKind::host);
      auto out = output(y, DeviceKind::host);
      engine->call({&in, 1}, {&out, 1}, nullptr, nullptr);
    };
    const auto check = [&](const char* part, Code code) {
      const auto failure = test::failure_of(call);
      CHECK(failure.code() == code);
      CHECK_HAS(std::string(failure.what()), part);
      standins_faults()->enqueue = false;
      call();
      CHECK(y[7] == 7.0f);
    };
    standins_faults()->malloc_after = 0;
    check("allocating device memory", Code::out_of_memory);
    standins_faults()->memcpy_after = 0;
    check("copying an input", Code::internal);
    standins_faults()->memcpy_after = 1;
    check("copying an output", Code::internal);
    standins_faults()->synchronize_after = 0;
    check("waiting for the outputs", Code::internal);
    standins_faults()->enqueue = true;
    check("could not enqueue", Code::internal);

    auto in = input(x, 2, DeviceKind::host);
    auto out = output(y, DeviceKind::host);
    in.dtype = DType::int64;
    CHECK_HAS(words_of([&] { engine->call({&in, 1}, {&out, 1}, nullptr, nullptr); }),
              "input 'x' is int64, the engine takes float32");
    in.dtype = DType::float32;
    in.sizes = Dims(std::array<std::int64_t, 2>{2, 5});
    CHECK_HAS(words_of([&] { engine->call({&in, 1}, {&out, 1}, nullptr, nullptr); }),
              "cannot have the shape (2, 5)");
    CHECK_HAS(words_of([&] { engine->call({}, {&out, 1}, nullptr, nullptr); }), "takes 1 inputs, got 0");
    CHECK(engine->entry()->info().failed_calls == 8);
  }
  standins_faults()->create_context = true;
  auto raw = make_raw(kPlan);
  CHECK_HAS(words_of([&] { raw->prepare(); }), "no execution context");
  standins_faults()->create_context = false;
  standins_faults()->event_create_after = 1;
  CHECK(test::failure_of([] { make_raw(kPlan); }).code() == Code::out_of_memory);
  raw.reset();
  CHECK_HAS(words_of([] { make_raw("ptrt"); }), "magic tag does not match");
  CHECK_HAS(words_of([] { make_raw("ftrt input x int4 4"); }), "without whole bytes");
  CHECK_HAS(words_of([] { make_raw(kPlan, {{3, 0}}); }), "aliased binding");
  CHECK(standins_counts()->live_allocations == 0);
  CHECK(standins_counts()->live_events == 0);
  CHECK(standins_counts()->live_streams == 0);

  const LibraryNames right = libraries;
  libraries.nvinfer = {"libnvinfer-that-is-not-there.so"};
  CHECK_HAS(words_of([] { make_raw(kPlan); }), "libnvinfer-that-is-not-there.so");
  libraries = right;
  libraries.cudart = {"libm.so.6"};
  CHECK_HAS(words_of([] { make_raw(kPlan); }), "cudaStreamSynchronize");
  libraries = right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: engine_test NVINFER_STANDIN CUDART_STANDIN\n");
    return 2;
  }
  libraries = {{argv[1]}, {argv[2]}};
  results_from_host_memory();
  calls_stay_asynchronous();
  the_default_stream_is_ordered_and_stays_asynchronous();
  a_busy_engine_is_waited_for_once();
  the_level_changes_under_running_engines();
  teardown_waits_and_gives_everything_back();
  a_recording_gets_the_last_call_at_teardown();
  a_recording_has_no_device_time_of_earlier_calls();
  outputs_that_the_device_sizes();
  aliased_storage_stays_the_callers();
  bindings_follow_the_callers_order();
  tensors_without_elements();
  a_call_that_failed_leaves_no_copies_behind();
  failures_say_what_failed();
  std::printf("%s\n", failures == 0 ? "all passed" : "FAILED");
  return failures == 0 ? 0 : 1;
}
