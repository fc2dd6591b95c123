#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <set>

#include "core/config.hpp"
#include "core/instrumented_engine.hpp"
#include "core/recorder.hpp"
#include "tests/check.hpp"
#include "tests/fake_engine.hpp"

namespace torchtrt_viz {
namespace {

using test::FakeEngine;

class Sink final : public ReportSink {
 public:
  explicit Sink(Level limit = Level::layers) : limit_(limit) {}
  Level limit() const override { return limit_; }
  void report(const CallReport& report) override {
    ++reports;
    ok = report.failure == nullptr;
    call = report.call;
    spans.assign(report.spans.begin(), report.spans.end());
    names.clear();
    for (const auto& span : spans) names.emplace_back(name_text(span.name));
  }
  int reports = 0;
  bool ok = false;
  std::uint64_t call = 0;
  std::vector<SpanRecord> spans;
  std::vector<std::string> names;

 private:
  Level limit_;
};

struct Rig {
  FakeEngine::Log log;
  FakeEngine* fake = nullptr;
  std::unique_ptr<InstrumentedEngine> engine;

  explicit Rig(std::optional<Level> load = {}, std::optional<Format> format = {},
               const std::string& prefix = {}, std::vector<std::string> layers = {"conv", "conv", "relu"}) {
    InstrumentedEngine::Options options;
    options.load.level = load;
    options.load.format = format;
    if (!prefix.empty()) options.load.path_prefix = prefix;
    auto made = std::make_unique<FakeEngine>(log, std::move(layers));
    fake = made.get();
    EngineIdentity identity;
    identity.content_hash = 0x1234;
    identity.name = "fake";
    identity.method = "forward";
    identity.runtime = "host";
    identity.owner = "executorch";
    engine = InstrumentedEngine::create(std::move(made), identity, options);
  }
  void call(ReportSink* sink) { engine->call({}, {}, nullptr, sink); }
  EngineInfo info() const { return engine->entry()->info(); }
};

const std::vector<std::string> kPhases = {"torchtrt.input_binding",  "torchtrt.shape_inference",
                                          "torchtrt.output_binding", "torchtrt.enqueue_host",
                                          "torchtrt.output_staging", "torchtrt.synchronize"};

TEST(off_measures_nothing) {
  Rig rig(Level::off);
  Sink sink;
  CHECK(!rig.engine->may_measure());
  rig.call(&sink);
  CHECK_EQUAL(sink.reports, 0);
  CHECK_EQUAL(rig.log.recorded_calls, 0);
  CHECK_EQUAL(rig.log.attachments, 0);
  CHECK_EQUAL(rig.info().calls, 1);
}

TEST(no_event_tracer_produces_no_backend_event_work) {
  Rig rig(Level::layers);
  rig.call(nullptr);
  CHECK_EQUAL(rig.log.recorded_calls, 0);  // attached, and its gate closed
  CHECK_EQUAL(rig.log.attachments, 1);
}

TEST(phases_emits_the_expected_stable_event_names) {
  Rig rig(Level::phases);
  Sink sink;
  rig.call(&sink);
  auto expected = kPhases;
  expected.emplace_back("torchtrt.delegate");
  CHECK(sink.names == expected);
  CHECK_EQUAL(rig.log.attachments, 0);
  for (std::size_t i = 0; i + 1 < sink.spans.size(); ++i) {
    CHECK(sink.spans[i].end_ns <= sink.spans[i + 1].end_ns);
    CHECK(sink.spans[i].start_ns <= sink.spans[i].end_ns);
    CHECK(sink.spans[i].start_ns >= sink.spans.back().start_ns);
    CHECK(sink.spans[i].end_ns <= sink.spans.back().end_ns);
  }
}

TEST(delegate_level_emits_the_delegate_alone) {
  Rig rig(Level::delegate);
  Sink sink;
  rig.call(&sink);
  CHECK(sink.names == std::vector<std::string>{"torchtrt.delegate"});
}

TEST(layers_lie_inside_enqueue_and_sum_to_no_more) {
  Rig rig(Level::layers);
  Sink sink;
  rig.call(&sink);
  const auto enqueue = std::find_if(sink.spans.begin(), sink.spans.end(), [](const auto& span) {
    return name_text(span.name) == "torchtrt.enqueue_host";
  });
  std::int64_t sum = 0;
  std::set<std::string_view> ids;
  for (const auto& span : sink.spans) {
    if (span.layer < 0) continue;
    sum += span.end_ns - span.start_ns;
    ids.insert(name_text(span.name));
    CHECK(span.start_ns >= enqueue->start_ns);
    CHECK(span.end_ns <= enqueue->end_ns);
  }
  CHECK_EQUAL(sum, 6000);
  CHECK_EQUAL(ids.size(), std::size_t{3});  // two of them have the same name
}

TEST(layers_attaches_a_profiler_exactly_once_per_context) {
  Rig rig(Level::layers);
  Sink sink;
  for (int i = 0; i < 5; ++i) rig.call(&sink);
  CHECK_EQUAL(rig.info().attachments, 1);
  CHECK_EQUAL(rig.info().contexts, 1);
}

TEST(a_tracer_without_operators_gets_no_layers) {
  Rig rig(Level::layers);
  Sink sink(Level::phases);
  rig.call(&sink);
  CHECK_EQUAL(sink.spans.size(), kPhases.size() + 1);
  CHECK_EQUAL(rig.log.recorded_calls, 0);
}

TEST(errors_end_their_phase_and_are_reported) {
  const char* steps[] = {"bind_inputs", "infer_shapes",  "bind_outputs",
                         "enqueue",     "stage_outputs", "synchronize"};
  for (std::size_t i = 0; i < 6; ++i) {
    Rig rig(Level::phases);
    rig.fake->fail_at = steps[i];
    Sink sink;
    const auto failure = test::failure_of([&] { rig.call(&sink); });
    CHECK_EQUAL(std::string(failure.what()), std::string(steps[i]) + " was told to fail");
    CHECK(!sink.ok);
    auto expected =
        std::vector<std::string>(kPhases.begin(), kPhases.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    expected.emplace_back("torchtrt.delegate");
    CHECK(sink.names == expected);
    CHECK_EQUAL(rig.info().failed_calls, 1);
    rig.fake->fail_at.clear();
    rig.call(&sink);
    CHECK_EQUAL(sink.names.size(), kPhases.size() + 1);
    CHECK_EQUAL(sink.call, std::uint64_t{1});
  }
}

TEST(a_failing_load_leaves_no_engine) {
  FakeEngine::Log log;
  auto fake = std::make_unique<FakeEngine>(log, std::vector<std::string>{});
  fake->fail_at = "prepare";
  CHECK_THROWS(InstrumentedEngine::create(std::move(fake), {}, {}));
  CHECK(log.destroyed);
}

TEST(the_process_switch_is_followed_at_the_next_call) {
  reset_config();
  Rig rig;
  Sink sink;
  rig.call(&sink);
  CHECK_EQUAL(sink.reports, 0);
  change_config({.execution = true, .level = "layers", .format = "etdump"});
  rig.call(&sink);
  CHECK_EQUAL(sink.reports, 1);
  CHECK_EQUAL(rig.info().level, Level::layers);
  CHECK_EQUAL(rig.info().level_source, LevelSource::process);
  CHECK_EQUAL(rig.log.attachments, 1);
  change_config({.execution = false});
  rig.call(&sink);
  CHECK_EQUAL(sink.reports, 1);
  change_config({.execution = true});
  rig.call(&sink);
  CHECK_EQUAL(sink.reports, 2);
  CHECK_EQUAL(rig.log.attachments, 1);
  reset_config();
}

TEST(a_load_option_wins_over_the_process_switch) {
  change_config({.execution = true, .level = "layers", .format = "etdump"});
  Rig rig(Level::delegate);
  Sink sink;
  rig.call(&sink);
  CHECK_EQUAL(sink.spans.size(), std::size_t{1});
  reset_config();
}

TEST(unwritable_prefixes_fail_the_load) {
  const auto failure = test::failure_of([] { Rig(Level::layers, Format::trex, "/proc/self/nothing"); });
  CHECK_EQUAL(failure.code(), Code::io_error);
  CHECK(test::says(failure, "/proc/self/nothing"));
}

TEST(multiple_engines_produce_unique_trace_identifiers) {
  const test::TemporaryDirectory directory;
  std::set<std::string> files;
  std::size_t written = 0;
  {
    Rig a(Level::layers, Format::perfetto, directory.path());
    Rig b(Level::layers, Format::perfetto, directory.path());
    CHECK_EQUAL(a.info().engine_id, b.info().engine_id);
    CHECK(a.info().instance != b.info().instance);
    a.call(nullptr);
    b.call(nullptr);
    for (const auto* rig : {&a, &b}) {
      for (const auto& file : rig->info().files) files.insert(file);
      written += rig->info().files.size();
    }
  }
  CHECK_EQUAL(written, std::size_t{2});
  CHECK_EQUAL(files.size(), std::size_t{2});
  CHECK_EQUAL(directory.files().size(), std::size_t{2});
}

TEST(trex_sidecars_have_every_call) {
  const test::TemporaryDirectory directory;
  EngineInfo info;
  {
    Rig rig(Level::layers, Format::trex, directory.path());
    for (int i = 0; i < 10; ++i) rig.call(nullptr);
    CHECK_EQUAL(rig.info().files.size(), std::size_t{2});
    info = rig.info();
  }
  simdjson::dom::parser parser;
  for (const auto& file : info.files) {
    if (!file.ends_with(".profile.json")) continue;
    const simdjson::dom::array rows = parser.load(file);
    CHECK_EQUAL(rows.size(), std::size_t{4});
    CHECK_EQUAL(std::int64_t(rows.at(0)["count"]), 10);
    CHECK_EQUAL(std::string_view(rows.at(1)["name"]), "conv [layer_0]");
    CHECK_EQUAL(std::string_view(rows.at(2)["name"]), "conv [layer_1]");
    CHECK_EQUAL(std::string_view(rows.at(3)["name"]), "relu");
    CHECK_EQUAL(double(rows.at(3)["timeMs"]), 0.03);
    CHECK_EQUAL(double(rows.at(3)["medianMs"]), 0.003);
    CHECK_EQUAL(double(rows.at(3)["percentage"]), 50.0);
  }
}

TEST(perfetto_sidecars_have_calls_phases_and_layers) {
  const test::TemporaryDirectory directory;
  std::string file;
  {
    Rig rig(Level::layers, Format::perfetto, directory.path(), {"a \"quoted\" \xFF"});
    for (int i = 0; i < 3; ++i) rig.call(nullptr);
    file = rig.info().files.at(0);
  }
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  CHECK(parser.load(file).get(root) == simdjson::SUCCESS);
  std::size_t slices = 0;
  for (const auto event : simdjson::dom::array(root["traceEvents"]))
    slices += std::string_view(event["ph"]) == "X";
  CHECK_EQUAL(slices, std::size_t{3 * 8});
  CHECK_EQUAL(std::string_view(root["otherData"]["engine_runtime"]), "host");
  CHECK_EQUAL(std::int64_t(root["otherData"]["calls"]), 3);
}

TEST(etdump_format_writes_no_file) {
  const test::TemporaryDirectory directory;
  {
    Rig rig(Level::layers, Format::etdump, directory.path());
    Sink sink;
    rig.call(&sink);
  }
  CHECK(directory.files().empty());
}

TEST(package_sidecars_are_written_and_switched_off) {
  const test::TemporaryDirectory directory;
  reset_config();
  FakeEngine::Log log;
  InstrumentedEngine::Options options;
  options.sidecars = SidecarKind::package;
  EngineIdentity identity;
  identity.name = "pkg";
  auto engine = InstrumentedEngine::create(std::make_unique<FakeEngine>(log, std::vector<std::string>{"a"}),
                                           identity, options);
  engine->call({}, {}, nullptr, nullptr);
  CHECK(directory.files().empty());
  change_config({.execution = true, .format = "perfetto", .path_prefix = directory.path()});
  engine->call({}, {}, nullptr, nullptr);
  CHECK_EQUAL(directory.files().size(), std::size_t{5});
  engine->call({}, {}, nullptr, nullptr);
  change_config({.execution = false});  // what the second call collected is written here
  simdjson::dom::parser parser;
  std::size_t with_layers = 0;
  for (const auto& file : directory.files()) {
    simdjson::dom::element root;
    CHECK(parser.load(file).get(root) == simdjson::SUCCESS);
    if (!file.ends_with("_engine_execution_profile.trace")) continue;
    CHECK_EQUAL(root.get_array().value().size(), std::size_t{2});
    ++with_layers;
  }
  CHECK_EQUAL(with_layers, std::size_t{1});
  const auto recorded = log.recorded_calls;
  for (const auto& file : directory.files()) std::filesystem::remove(file);
  engine->call({}, {}, nullptr, nullptr);
  engine.reset();
  CHECK_EQUAL(log.recorded_calls, recorded);
  CHECK(directory.files().empty());
  reset_config();
}

TEST(recordings_collect_calls_of_every_engine) {
  reset_config();
  Rig a(Level::phases), b(Level::layers), c(Level::off);
  Recording recording(100);
  for (auto* rig : {&a, &b, &c}) rig->call(nullptr);
  auto columns = recording.stop();
  CHECK_EQUAL(columns.engines.size(), std::size_t{2});
  CHECK_EQUAL(columns.start_ns.size(), std::size_t{7 + 10});
  CHECK_EQUAL(columns.dropped, 0);
  std::size_t layers = 0;
  for (std::size_t i = 0; i < columns.kind.size(); ++i) {
    layers += columns.kind[i] == 2;
    CHECK(columns.end_ns[i] >= columns.start_ns[i]);
    CHECK_EQUAL(columns.thread[i], thread_id());
  }
  CHECK_EQUAL(layers, std::size_t{3});
  CHECK(std::count(columns.labels.begin(), columns.labels.end(), "conv") == 2);
  a.call(nullptr);
  CHECK(recording.stop().start_ns.empty());
}

TEST(full_recordings_count_what_they_drop) {
  Rig rig(Level::phases);
  Recording recording(10);
  for (int i = 0; i < 3; ++i) rig.call(nullptr);
  const auto columns = recording.stop();
  CHECK_EQUAL(columns.start_ns.size(), std::size_t{10});
  CHECK_EQUAL(columns.dropped, 11);
}

}  // namespace
}  // namespace torchtrt_viz
