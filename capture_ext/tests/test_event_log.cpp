// The session's event log against the runtime's own ETDumpGen: the same calls, the same file by content.
#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "executorch/etdump_writer.hpp"
#include "executorch/event_log.hpp"
#include "formats/etdump/decode.hpp"
#include "tests/check.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

etdump::Dump decoded(const std::string& bytes) {
  return etdump::decode({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string dump_of(const EventLog& log, std::size_t first_block = 0) {
  return write_etdump(log.snapshot(first_block));
}

struct Row {
  std::string name, delegate, metadata;
  int run, chain, instruction, id;
  std::uint64_t start, end;
};

std::vector<Row> rows_of(const std::string& bytes) {
  const auto dump = decoded(bytes);
  const auto text = [&](std::int32_t row) {
    return row < 0 ? std::string("(none)") : std::string(dump.strings[static_cast<std::size_t>(row)]);
  };
  std::vector<Row> out;
  const auto& e = dump.events;
  for (std::size_t i = 0; i < e.start.size(); ++i) {
    out.push_back({text(e.name[i]), text(e.delegate_name[i]),
                   bytes.substr(e.metadata_offset[i], e.metadata_length[i]), e.run[i], e.chain[i],
                   e.instruction[i], e.delegate_id[i], e.start[i], e.end[i]});
  }
  return out;
}

// What the runtime and its delegates do in one execution.
void drive(rt::EventTracer& tracer) {
  tracer.create_event_block("Default");
  tracer.end_profiling(tracer.start_profiling("Method::init"));
  tracer.create_event_block("Execute");
  const auto method = tracer.start_profiling("Method::execute");
  tracer.set_chain_debug_handle(0, 7);
  const auto call = tracer.start_profiling("OPERATOR_CALL");
  tracer.end_profiling(tracer.start_profiling("native_call_add.out"));
  tracer.end_profiling(call);
  tracer.set_chain_debug_handle(0, 8);
  const auto delegate = tracer.start_profiling("DELEGATE_CALL");
  const auto phase = tracer.start_profiling_delegate("torchtrt.input_binding", -1);
  tracer.end_profiling_delegate(phase, "{\"n\":1}", 7);
  tracer.end_profiling_delegate(tracer.start_profiling_delegate(nullptr, 3), nullptr, 0);
  tracer.log_profiling_delegate("layer_0000_x", -1, 1000, 2000, "abc", 3);
  tracer.log_profiling_delegate(nullptr, 5, 3, 4, nullptr, 0);
  tracer.end_profiling(delegate);
  tracer.set_chain_debug_handle(-1, 0);
  tracer.end_profiling(method);
  tracer.end_profiling(tracer.start_profiling("explicit", 2, 9));
}

TEST(the_log_says_what_etdumpgen_says) {
  executorch::etdump::ETDumpGen peer;
  EventLog log;
  drive(peer);
  drive(log);
  const auto result = peer.get_etdump_data();
  const std::unique_ptr<void, decltype(&std::free)> owner(result.buf, &std::free);
  const auto expected = rows_of({static_cast<const char*>(result.buf), result.size});
  const auto found = rows_of(dump_of(log));
  CHECK_EQUAL(expected.size(), std::size_t{10});
  CHECK_EQUAL(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK_EQUAL(found[i].name, expected[i].name);
    CHECK_EQUAL(found[i].delegate, expected[i].delegate);
    CHECK_EQUAL(found[i].metadata, expected[i].metadata);
    CHECK_EQUAL(found[i].run, expected[i].run);
    CHECK_EQUAL(found[i].chain, expected[i].chain);
    CHECK_EQUAL(found[i].instruction, expected[i].instruction);
    CHECK_EQUAL(found[i].id, expected[i].id);
    CHECK(found[i].end >= found[i].start);
  }
  CHECK_EQUAL(found[5].start, std::uint64_t{1000});
  CHECK_EQUAL(found[5].end, std::uint64_t{2000});
}

TEST(dumps_can_be_taken_any_time_and_again) {
  EventLog log;
  const auto empty = dump_of(log);
  CHECK(decoded(empty).events.start.empty());
  drive(log);
  const auto once = dump_of(log);
  CHECK_EQUAL(dump_of(log), once);
  drive(log);
  CHECK_EQUAL(rows_of(dump_of(log)).size(), std::size_t{20});
  CHECK_EQUAL(decoded(dump_of(log)).runs.name.size(), std::size_t{4});
  const auto second_half = rows_of(dump_of(log, 2));
  CHECK_EQUAL(second_half.size(), std::size_t{10});
  CHECK_EQUAL(second_half[5].metadata, "abc");
  CHECK_EQUAL(second_half[3].metadata, "{\"n\":1}");
  CHECK(dump_of(log, 99).size() == empty.size());
  log.clear();
  CHECK_EQUAL(dump_of(log).size(), empty.size());
}

TEST(events_of_many_threads_are_all_there) {
  EventLog log;
  rt::EventTracer& tracer = log;
  tracer.create_event_block("Execute");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto name = "thread " + std::to_string(t);
      for (int i = 0; i < 5000; ++i) {
        tracer.log_profiling_delegate(name.c_str(), -1, 1, 2, name.data(), name.size());
        if (i % 1000 == 0) (void)dump_of(log);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQUAL(log.event_count(), std::size_t{20000});
  CHECK_EQUAL(rows_of(dump_of(log)).size(), std::size_t{20000});
}

TEST(a_log_that_is_switched_off_keeps_nothing) {
  EventLog log;
  log.set_recording(false);
  log.begin_run("forward");
  drive(log);
  log.end_run(RunStatus::ok, {});
  CHECK_EQUAL(log.event_count(), std::size_t{0});
  log.set_recording(true);
  log.begin_run("forward");
  drive(log);
  log.end_run(RunStatus::failed, "why");
  std::vector<std::uint64_t> counts;
  std::vector<std::string> names;
  const auto blocks = log.blocks(counts, names);
  CHECK_EQUAL(blocks.size(), std::size_t{2});
  CHECK_EQUAL(blocks[1].method, "forward");
  CHECK_EQUAL(blocks[1].status, RunStatus::failed);
  CHECK_EQUAL(blocks[1].error, "why");
  CHECK_EQUAL(names[1], "Execute");
  CHECK_EQUAL(counts[0] + counts[1], std::uint64_t{10});
  CHECK(blocks[1].end >= blocks[1].start);
}

TEST(events_outside_any_block_get_one) {
  EventLog log;
  rt::EventTracer& tracer = log;
  tracer.end_profiling(tracer.start_profiling("late"));
  CHECK_EQUAL(rows_of(dump_of(log)).size(), std::size_t{1});
}

}  // namespace
}  // namespace torchtrt_viz::et
