// What threads may do at the same time. Meaningful under -fsanitize=thread, true without.
#include <atomic>
#include <memory>
#include <thread>

#include "core/config.hpp"
#include "core/engine_registry.hpp"
#include "core/instrumented_engine.hpp"
#include "core/recorder.hpp"
#include "core/sidecar.hpp"
#include "tests/check.hpp"
#include "tests/fake_engine.hpp"

namespace torchtrt_viz {
namespace {

using test::FakeEngine;

constexpr int kRounds = 400;

class CountingSink final : public ReportSink {
 public:
  Level limit() const override { return Level::layers; }
  void report(const CallReport& report) override { spans += report.spans.size(); }
  std::size_t spans = 0;
};

TEST(a_generation_is_never_seen_before_its_snapshot) {
  reset_config();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < kRounds; ++i) {
      const auto prefix = "/p" + std::to_string(config_generation() + 1);
      change_config({.execution = true, .format = "etdump", .path_prefix = prefix});
    }
    stop = true;
  });
  std::thread reader([&] {
    while (!stop) {
      const auto seen = config_generation();
      const auto snapshot = config_snapshot();
      if (snapshot.generation < seen) test::fail(__FILE__, __LINE__, "an older snapshot than its generation");
      if (snapshot.execution && snapshot.path_prefix != "/p" + std::to_string(snapshot.generation)) {
        test::fail(__FILE__, __LINE__, "a torn snapshot");
      }
    }
  });
  writer.join();
  reader.join();
  reset_config();
}

TEST(engines_run_while_the_configuration_changes) {
  reset_config();
  const test::TemporaryDirectory directory;
  FakeEngine::Log logs[2];
  std::unique_ptr<InstrumentedEngine> engines[2];
  for (int i = 0; i < 2; ++i) {
    EngineIdentity identity;
    identity.name = "e";
    engines[i] = InstrumentedEngine::create(
        std::make_unique<FakeEngine>(logs[i], std::vector<std::string>{"a", "b"}), identity, {});
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<int> calls{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      CountingSink sink;
      for (int i = 0; i < kRounds; ++i) {
        engines[t % 2]->call({}, {}, nullptr, &sink);
        calls += 1;
      }
    });
  }
  threads.emplace_back([&] {
    const char* levels[] = {"off", "delegate", "phases", "layers"};
    const char* formats[] = {"etdump", "perfetto", "trex"};
    for (int i = 0; !stop; ++i) {
      change_config({.execution = i % 5 != 0,
                     .level = levels[i % 4],
                     .format = formats[i % 3],
                     .path_prefix = directory.path() + "/" + std::to_string(i % 2)});
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      Recording recording(1000);
      (void)flush_sidecars();
      for (const auto& entry : registered_engines()) (void)entry->info();
      const auto columns = recording.stop();
      if (columns.start_ns.size() != columns.name.size()) test::fail(__FILE__, __LINE__, "ragged columns");
    }
  });
  for (int t = 0; t < 4; ++t) threads[static_cast<std::size_t>(t)].join();
  stop = true;
  threads[4].join();
  threads[5].join();
  CHECK_EQUAL(calls.load(), 4 * kRounds);
  CHECK_EQUAL(engines[0]->entry()->info().calls + engines[1]->entry()->info().calls, 4 * kRounds);
  reset_config();
}

// What a capture does at its begin and end, while programs are loaded, called and dropped by other threads.
TEST(engines_come_and_go_while_the_configuration_is_applied_everywhere) {
  reset_config();
  const test::TemporaryDirectory directory;
  std::atomic<bool> stop{false};
  std::atomic<int> working{3};
  std::vector<std::thread> threads;
  std::atomic<std::int64_t> calls{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      CountingSink sink;
      for (int i = 0; i < kRounds / 4; ++i) {
        FakeEngine::Log log;
        const EngineLoadScope scope;
        EngineIdentity identity;
        identity.name = "e" + std::to_string(t);
        InstrumentedEngine::Options options;
        options.sidecars = t == 0 ? SidecarKind::package : SidecarKind::delegate;
        auto engine = InstrumentedEngine::create(
            std::make_unique<FakeEngine>(log, std::vector<std::string>{"a"}), identity, options);
        CHECK_EQUAL(scope.engines().size(), std::size_t{1});
        for (int c = 0; c < 3; ++c) engine->call({}, {}, nullptr, c == 1 ? nullptr : &sink);
        calls += engine->entry()->info().calls;
        engine.reset();
        CHECK(log.destroyed);
        CHECK(log.attachments <= 1);
      }
      working -= 1;
    });
  }
  threads.emplace_back([&] {
    const char* levels[] = {"layers", "off", "phases", "delegate"};
    const char* formats[] = {"etdump", "perfetto", "trex"};
    for (int i = 0; working > 0; ++i) {
      change_config({.execution = i % 3 != 0,
                     .level = levels[i % 4],
                     .format = formats[i % 3],
                     .path_prefix = directory.path()});
      InstrumentedEngine::apply_everywhere();
    }
    stop = true;
  });
  threads.emplace_back([&] {
    while (!stop) {
      Recording recording(1000);
      InstrumentedEngine::apply_everywhere();
      for (const auto& entry : registered_engines()) (void)file_stem(entry->info());
      set_rank(rank() < 3 ? rank() + 1 : -1);
      (void)recording.stop();
    }
    set_rank(-1);
  });
  for (auto& thread : threads) thread.join();
  CHECK_EQUAL(calls.load(), 3 * (kRounds / 4) * 3);
  for (const auto& entry : registered_engines()) CHECK(!entry->info().alive);
  reset_config();
}

TEST(names_are_interned_from_many_threads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<NameId>> seen(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) seen[t].push_back(intern_name("race " + std::to_string(i)));
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t t = 1; t < 4; ++t) CHECK(seen[t] == seen[0]);
}

}  // namespace
}  // namespace torchtrt_viz
