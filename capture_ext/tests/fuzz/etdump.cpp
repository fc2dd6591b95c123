// libFuzzer harness of the ETDump decoder and of the tree that is built from what it decodes.
//
// A short run is part of the test suite (tests/fuzz/test_fuzz_etdump.py). For a long one:
//
//   clang++-14 -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I capture_ext
//     capture_ext/tests/fuzz/etdump.cpp capture_ext/formats/etdump/*.cpp -o fuzz_etdump
//   mkdir -p seeds found && cp ../shared/corpus/etdump/*.etdp seeds/
//   ./fuzz_etdump -max_total_time=3600 -max_len=65536 -timeout=10 -rss_limit_mb=1024 found seeds
//
// (one line each). `-print_final_stats=1 -print_coverage=1` says what was executed and covered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "formats/etdump/arrange.hpp"
#include "formats/etdump/decode.hpp"
#include "formats/etdump/dictionary.hpp"

namespace etdump = torchtrt_viz::etdump;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// What the Python side relies on.
void check_columns(const etdump::Dump& dump, std::size_t bytes) {
  const etdump::Events& e = dump.events;
  const std::size_t rows = e.run.size();
  for (const auto* column : {&e.chain, &e.instruction, &e.name, &e.delegate_name, &e.delegate_id}) {
    require(column->size() == rows);
  }
  require(e.role.size() == rows && e.start.size() == rows && e.end.size() == rows);
  require(e.metadata_offset.size() == rows && e.metadata_length.size() == rows);
  require(rows <= bytes / 8);
  const auto names = static_cast<std::int32_t>(dump.strings.size());
  for (std::size_t i = 0; i < rows; ++i) {
    require(e.name[i] >= -1 && e.name[i] < names && e.delegate_name[i] >= -1 && e.delegate_name[i] < names);
    require(std::uint64_t{e.metadata_offset[i]} + e.metadata_length[i] <= bytes);
    require(i == 0 || e.run[i] >= e.run[i - 1]);
  }
  if (dump.fatal.fault != torchtrt_viz::flatbuffer::Fault::kNone) return;
  require(rows == 0 || static_cast<std::size_t>(e.run.back()) < dump.runs.name.size());
  std::int64_t counted = 0;
  for (std::size_t i = 0; i < dump.runs.count.size(); ++i) {
    require(dump.runs.first[i] == counted);
    counted += dump.runs.count[i];
  }
  require(counted == static_cast<std::int64_t>(rows));
  const etdump::Tensors& t = dump.tensors;
  for (std::size_t i = 0; i < t.offset.size(); ++i) {
    require(static_cast<std::size_t>(t.size_first[i] + t.size_count[i]) <= t.sizes.size());
    require(static_cast<std::size_t>(t.stride_first[i] + t.stride_count[i]) <= t.strides.size());
  }
  for (std::size_t i = 0; i < dump.debugs.run.size(); ++i) {
    require(static_cast<std::size_t>(dump.debugs.tensor_first[i] + dump.debugs.tensor_count[i]) <=
            t.offset.size());
  }
}

void check_tree(const etdump::Dump& dump, std::uint8_t seed) {
  std::vector<std::int32_t> run, chain, instruction, shape;
  std::vector<std::uint8_t> role, placing, in_engine;
  std::vector<std::int64_t> start, duration;
  const etdump::Events& e = dump.events;
  for (std::size_t i = 0; i < e.run.size(); ++i) {
    const auto last = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (e.end[i] < e.start[i] || e.end[i] > last) continue;
    run.push_back(e.run[i]);
    chain.push_back(e.chain[i]);
    instruction.push_back(e.instruction[i]);
    role.push_back(e.role[i]);
    start.push_back(static_cast<std::int64_t>(e.start[i]));
    duration.push_back(static_cast<std::int64_t>(e.end[i] - e.start[i]));
    placing.push_back(static_cast<std::uint8_t>((i * 7 + seed) % 4));
    in_engine.push_back(static_cast<std::uint8_t>((i + seed) % 2));
  }
  for (std::size_t i = 0; i < dump.runs.name.size(); ++i) {
    shape.push_back(static_cast<std::int32_t>(dump.runs.signature[i] % 5));
  }
  etdump::Timeline timeline{.run = run,
                            .chain = chain,
                            .instruction = instruction,
                            .role = role,
                            .start = start,
                            .duration = duration,
                            .placing = {},
                            .in_engine = {},
                            .shape = shape};
  if (seed % 2 != 0) {
    timeline.placing = placing;
    timeline.in_engine = in_engine;
  }
  const etdump::Arrangement tree = etdump::arrange(timeline);
  for (std::size_t i = 0; i < run.size(); ++i) {
    require(tree.self_ns[i] >= 0 && tree.self_ns[i] <= duration[i]);
    const std::int64_t above = tree.parent[i];
    require(above >= -1 && above < static_cast<std::int64_t>(run.size()));
    require(above == -1 ? tree.depth[i] == 0
                        : tree.depth[i] == tree.depth[static_cast<std::size_t>(above)] + 1);
    require(above == -1 || run[static_cast<std::size_t>(above)] == run[i]);
    require(tree.call[i] >= -1 && tree.call[i] < static_cast<std::int64_t>(run.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  const etdump::Dump dump = etdump::decode(bytes);
  check_columns(dump, size);
  if (dump.fatal.fault == torchtrt_viz::flatbuffer::Fault::kNone) {
    check_tree(dump, size == 0 ? 0 : data[size - 1]);
    const std::span<const std::int32_t> columns[] = {dump.events.instruction, dump.events.name};
    const etdump::Groups groups = etdump::group_rows(columns);
    require(groups.code.size() == dump.events.run.size());
  }
  return 0;
}
