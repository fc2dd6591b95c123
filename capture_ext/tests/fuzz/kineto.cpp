// libFuzzer harness of the trace-event decoder, of the reader of single events, and of the mender of their
// text.
//
// A short run is part of the test suite (tests/fuzz/test_fuzz_kineto.py). For a long one:
//
//   clang++-14 -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I capture_ext
//     capture_ext/tests/fuzz/kineto.cpp capture_ext/formats/kineto/*.cpp capture_ext/formats/io/*.cpp
//     capture_ext/columns/nesting.cpp -isystem $SIMDJSON $SIMDJSON/simdjson.cpp -o fuzz_kineto
//   mkdir -p seeds found && cp ../shared/cases/kineto*/*.json seeds/
//   ./fuzz_kineto -max_total_time=3600 -max_len=20000 -timeout=10 -rss_limit_mb=1024
//     -dict=capture_ext/tests/fuzz/kineto.dict found seeds
//
// (one line each). SIMDJSON is the folder of simdjson.h and simdjson.cpp, where pysimdjson is installed:
// `python -c 'import simdjson; print(*simdjson.__path__)'`. `-print_final_stats=1 -print_coverage=1` says
// what was executed and covered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "formats/kineto/decoder.hpp"
#include "formats/kineto/encode.hpp"
#include "formats/kineto/locate.hpp"

namespace kineto = torchtrt_viz::kineto;

namespace {

constexpr std::uint8_t kStep = 3;

void require(bool condition) {
  if (!condition) std::abort();
}

kineto::Options options_of(std::size_t window) {
  using How = kineto::NameRule::How;
  kineto::Options options;
  options.window = window;
  options.longest_event = 1U << 14;
  options.kept_keys = {"distributedInfo", "deviceProperties"};
  options.vocabulary.categories = {{"cpu_op", {1, 0}}, {"kernel", {5, 1}}, {"user_annotation", {2, 0}}};
  options.vocabulary.rules = {{How::starts, "ProfilerStep#", 2, kStep}, {How::contains, "nccl", 5, 8}};
  options.vocabulary.step_kind = kStep;
  return options;
}

// What the Python side relies on.
void check(kineto::Decoder& decoder) {
  kineto::Collector& tables = decoder.tables();
  kineto::Spans& spans = tables.spans;
  const auto n = static_cast<std::int64_t>(spans.size());
  const auto lanes = static_cast<std::int64_t>(decoder.lanes().all().size());
  const torchtrt_viz::Nesting& nesting = decoder.nesting();
  for (std::size_t row = 0; row < spans.size(); ++row) {
    require(spans.dur[row] >= 0);
    require(spans.lane[row] >= 0 && spans.lane[row] < lanes);
    const std::int64_t parent = nesting.parent[row];
    require(parent >= -1 && parent < n);
    require(nesting.depth[row] == (parent < 0 ? 0 : nesting.depth[static_cast<std::size_t>(parent)] + 1));
    require(nesting.self_ns[row] >= 0 && nesting.self_ns[row] <= spans.dur[row]);
    require(row == 0 || spans.at[row] > spans.at[row - 1]);
  }
  for (const std::int64_t row : decoder.unclosed_calls()) require(row >= 0 && row < n);
  for (const kineto::EndOffset& end : tables.end_offsets) require(end.row >= 0 && end.row < n);
  const kineto::Flows& flows = decoder.flows();
  for (std::size_t i = 0; i < flows.id.size(); ++i) {
    require(flows.source[i] >= -1 && flows.source[i] < n);
    require(flows.target[i] >= -1 && flows.target[i] < n);
  }
  for (std::size_t i = 0; i < tables.instants.ts.size(); ++i) {
    require(tables.instants.lane[i] >= 0 && tables.instants.lane[i] < lanes);
  }
  for (std::size_t i = 0; i < tables.counters.ts.size(); ++i) {
    require(tables.counters.counter[i] < tables.series_names.size());
  }
}

void encode_names(kineto::Decoder& decoder) {
  kineto::Notes notes;
  kineto::Spans& spans = decoder.tables().spans;
  const kineto::Encoded names =
      kineto::encode(std::move(spans.name), decoder.strings().names, spans.at, notes);
  const auto size = static_cast<std::int64_t>(names.categories.size());
  std::visit(
      [&](const auto& codes) {
        for (std::size_t i = 0; i < codes.size(); ++i) require(codes[i] >= -1 && codes[i] < size);
      },
      names.codes);
}

void read_events(kineto::Decoder& decoder, std::string_view content) {
  kineto::Mender mender;
  const kineto::Spans& spans = decoder.tables().spans;
  for (std::size_t row = 0; row < spans.size() && row < 50; ++row) {
    const auto at = static_cast<std::size_t>(spans.at[row]);
    require(at < content.size() && content[at] == '{');
    std::string_view found;
    const char* const end = content.data() + content.size();
    const auto located = kineto::locate_event(content.data() + at, end, true, mender, found);
    if (located != kineto::Located::found) continue;
    const std::string event(found);
    (void)kineto::normalize_event(event, 200, mender);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t window = 64 + 31 * static_cast<std::size_t>(data[0]);
  const std::size_t block = 1 + 17 * static_cast<std::size_t>(data[1]);
  const std::string_view content(reinterpret_cast<const char*>(data) + 2, size - 2);
  kineto::Decoder decoder(options_of(window));
  for (std::size_t at = 0; at < content.size(); at += block) decoder.feed(content.substr(at, block));
  decoder.finish();
  check(decoder);
  read_events(decoder, content);
  encode_names(decoder);
  kineto::Mender mender;
  (void)kineto::normalize_event(content, 20, mender);
  return 0;
}
