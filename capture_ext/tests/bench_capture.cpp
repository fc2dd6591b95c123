// What capturing costs, in ns, as JSON: benchmarks/capture_cost.py builds and runs this.
//
//   off_call        a call of an engine that does nothing, through the instrumented engine, level off
//   bare_call       the same work without the feature: mutex, call number, the engine's six steps
//   delegate_call, phases_call
//                   the same engine with a session's event log as tracer, seven events in the latter
//   etdumpgen_phases_call
//                   with the runtime's own ETDumpGen in place of the log
//   layer_record    one operator through the host engine's layer tracer: its kernel's event and its call's
//   layer_event     one layer from the report of a call to the event log
//   clock           one reading of the clock: a layer record takes three, a phase event two
#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/instrumented_engine.hpp"
#include "executorch/event_log.hpp"
#include "executorch/tracer_sink.hpp"
#include "host_engine/layer_tracer.hpp"
#include "tests/bench_bare.hpp"

namespace torchtrt_viz {
namespace {

namespace rt = executorch::runtime;

class IdleEngine final : public Engine {
 public:
  std::string_view runtime() const override { return "host"; }
  std::span<const BindingInfo> inputs() const override { return {}; }
  std::span<const BindingInfo> outputs() const override { return {}; }
  void bind_inputs(std::span<const TensorView>) override {}
  void infer_shapes() override {}
  void bind_outputs(std::span<OutputView>) override {}
  void enqueue(std::uint64_t, void*, Record) override {}
  void stage_outputs(std::span<OutputView>) override {}
  void synchronize() override {}
  void want(Record) override {}
  void prepare() override {}
  std::int64_t attachments() const override { return 0; }
  std::int64_t contexts() const override { return 1; }
  void collect(SpanReports&) override {}
  const LayerTable& layers() const override { return layers_; }
  std::string layer_information() const override { return {}; }

 private:
  LayerTable layers_;
};

constexpr int kRounds = 31;

// What it is, the compiler cannot know: no call of it is inlined.
std::unique_ptr<Engine> idle_engine() {
  Engine* engine = new IdleEngine;
  asm volatile("" : "+r"(engine));
  return std::unique_ptr<Engine>(engine);
}

// Of this thread: other people's work does not count.
std::int64_t cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Median over rounds of the mean cost of one step. `prepare` runs before each round, untimed.
template <typename Prepare, typename Step>
double cost_ns(int steps, Prepare&& prepare, Step&& step) {
  std::vector<double> costs;
  for (int round = 0; round < kRounds; ++round) {
    prepare();
    const auto begin = cpu_ns();
    for (int i = 0; i < steps; ++i) step();
    costs.push_back(static_cast<double>(cpu_ns() - begin) / steps);
  }
  std::nth_element(costs.begin(), costs.begin() + kRounds / 2, costs.end());
  return costs[kRounds / 2];
}

std::unique_ptr<InstrumentedEngine> make(Level level) {
  InstrumentedEngine::Options options;
  options.load.level = level;
  return InstrumentedEngine::create(idle_engine(), {}, options);
}

void nothing() {}

void print(const char* name, double ns, bool last = false) {
  std::printf("  \"%s\": %.2f%s\n", name, ns, last ? "" : ",");
}

int run() {
  std::printf("{\n");
  bench::BareEngine bare(idle_engine());
  const auto off = make(Level::off);
  // As an adapter calls it: asked first whether to note the time.
  const auto off_call = [&] { off->call({}, {}, nullptr, nullptr, off->may_measure() ? monotonic_ns() : 0); };
  print("bare_call", cost_ns(20000, nothing, [&] { bare.call({}, {}, nullptr); }));
  print("off_call", cost_ns(20000, nothing, off_call));

  const auto delegate = make(Level::delegate);
  const auto phases = make(Level::phases);
  const auto metadata = et::delegate_metadata(phases->entry()->info());
  et::EventLog log;
  rt::EventTracer& tracer = log;
  et::TracerSink sink(&tracer, metadata);
  const auto fresh = [&] {
    log.clear();
    tracer.create_event_block("Execute");
  };
  print("delegate_call", cost_ns(2000, fresh, [&] { delegate->call({}, {}, nullptr, &sink); }));
  print("phases_call", cost_ns(2000, fresh, [&] { phases->call({}, {}, nullptr, &sink); }));

  std::unique_ptr<executorch::etdump::ETDumpGen> peer;
  std::unique_ptr<et::TracerSink> peer_sink;
  const auto fresh_peer = [&] {
    peer = std::make_unique<executorch::etdump::ETDumpGen>();
    peer->create_event_block("Execute");
    peer_sink = std::make_unique<et::TracerSink>(peer.get(), metadata);
  };
  print("etdumpgen_phases_call",
        cost_ns(2000, fresh_peer, [&] { phases->call({}, {}, nullptr, peer_sink.get()); }));

  constexpr int kLayers = 100;
  LayerTable layers;
  et::LayerTracer layer_tracer(layers);
  rt::EventTracer& inner = layer_tracer;
  SpanReports reports;
  const auto one_call = [&] {
    reports.clear();
    layer_tracer.open(0, &reports);
    for (int i = 0; i < kLayers; ++i) {
      inner.set_chain_debug_handle(0, static_cast<rt::DebugHandle>(i));
      const auto call = inner.start_profiling("OPERATOR_CALL");
      inner.end_profiling(inner.start_profiling("native_call_add.out"));
      inner.end_profiling(call);
    }
    layer_tracer.close();
  };
  print("layer_record", cost_ns(200, nothing, one_call) / kLayers);

  const EngineInfo info = phases->entry()->info();
  print("layer_event",
        cost_ns(200, fresh, [&] { sink.report({info, layers, reports, 0, nullptr}); }) / kLayers);
  volatile std::int64_t seen = 0;
  print("clock", cost_ns(20000, nothing, [&] { seen = monotonic_ns(); }), true);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace torchtrt_viz

int main() { return torchtrt_viz::run(); }
