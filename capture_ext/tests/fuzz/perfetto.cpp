// libFuzzer harness of the Perfetto decoder: packets, state of sequences, clocks, slices, work of GPUs,
// arguments, and the accounting of every packet and byte.
//
// A short run is part of the test suite (tests/fuzz/test_fuzz_perfetto.py). For a long one:
//
//   clang++-14 -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I capture_ext
//     capture_ext/tests/fuzz/perfetto.cpp capture_ext/formats/perfetto/*.cpp capture_ext/formats/io/*.cpp
//     -o fuzz_perfetto
//   mkdir -p seeds found && python tests/fuzz/perfetto_seeds.py seeds
//   ./fuzz_perfetto -max_total_time=3600 -max_len=16384 -timeout=10 -rss_limit_mb=1024
//     -dict=capture_ext/tests/fuzz/perfetto.dict found seeds
//
// (one line each). `-print_final_stats=1 -print_coverage=1` says what was executed and covered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "formats/perfetto/decoder.hpp"
#include "formats/perfetto/encode.hpp"

namespace pf = torchtrt_viz::perfetto;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// What the Python side relies on.
void check(const pf::Trace& trace, std::size_t bytes) {
  const auto strings = static_cast<std::int32_t>(trace.strings.size());
  const auto tracks = static_cast<std::int32_t>(trace.tracks.all().size());
  const auto text = [&](std::int32_t code) { return code >= -1 && code < strings; };
  const pf::Spans& s = trace.slices.spans;
  const std::size_t rows = s.name.size();
  for (const auto* column :
       {&s.category, &s.track, &s.iteration, &s.run, &s.begin_arguments, &s.end_arguments}) {
    require(column->size() == rows);
  }
  for (const auto* column : {&s.start, &s.dur, &s.correlation, &s.external_id, &s.corr_id})
    require(column->size() == rows);
  require(rows <= bytes);
  for (std::size_t i = 0; i < rows; ++i) {
    require(text(s.name[i]) && text(s.category[i]) && text(s.run[i]));
    require(s.track[i] >= 0 && s.track[i] < tracks && s.dur[i] >= 0 && s.iteration[i] >= -1);
  }
  const pf::Instants& p = trace.slices.instants;
  for (std::size_t i = 0; i < p.name.size(); ++i) {
    require(text(p.name[i]) && text(p.category[i]) && p.track[i] >= 0 && p.track[i] < tracks);
  }
  for (const std::int32_t track : trace.counters.track) require(track >= 0 && track < tracks);
  const pf::Flows& f = trace.slices.flows;
  require(f.source.size() == f.target.size() && f.source.size() == f.id.size());
  for (const auto* ends : {&f.source, &f.target}) {
    for (const std::int64_t row : *ends) require(row >= -1 && row < static_cast<std::int64_t>(rows));
  }
  for (const pf::Track& track : trace.tracks.all()) {
    require(text(track.name) && text(track.process_name) && text(track.thread_name) && text(track.unit));
  }
}

// Every packet became one thing, and every byte is in one place.
void balance(const pf::Trace& trace, std::size_t bytes) {
  const pf::Accounting& a = trace.accounting;
  pf::Count sum;
  const auto add = [&](const pf::Count& count) {
    require(count.packets <= trace.packets && count.bytes <= bytes);
    sum.packets += count.packets;
    sum.bytes += count.bytes;
  };
  for (const auto& [field, count] : a.read) add(count);
  for (const auto& [field, count] : a.unread) add(count);
  for (const auto& [type, count] : a.unread_events) add(count);
  for (const auto& [phase, count] : a.unread_phases) add(count);
  for (const pf::Count& count : a.left_out) add(count);
  require(sum.packets == trace.packets && a.bytes == bytes && a.identified <= trace.packets);
  std::uint64_t outside = a.cut_bytes;
  for (const auto& [field, count] : a.other_fields) outside += count.bytes;
  require(sum.bytes + outside == bytes);
  require(trace.slices.ends_without_begin <= trace.packets && trace.slices.bytes_of_lost_ends <= sum.bytes);
}

// The arguments of some events, and the spans written again.
void use(const pf::Trace& trace) {
  const pf::Spans& s = trace.slices.spans;
  std::size_t written = 0;
  for (std::size_t i = 0; i < s.name.size() && written < (1U << 22); ++i) {
    const std::string json = trace.arguments.json(s.begin_arguments[i], s.end_arguments[i], trace.strings);
    require(json.size() >= 2 && json.front() == '{' && json.back() == '}');
    written += json.size();
  }
  const std::vector<std::int32_t> lanes = pf::assign_lanes(s.track, s.start, s.dur);
  std::vector<std::uint64_t> uuids;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    uuids.push_back((static_cast<std::uint64_t>(s.track[i]) << 20) |
                    static_cast<std::uint64_t>(lanes[i] + 1));
  }
  const std::vector<std::int32_t> none(s.name.size(), -1);
  const pf::SpanColumns columns{uuids, s.name,        none,          none,        none, s.start,
                                s.dur, s.correlation, s.external_id, s.iteration, s.run};
  std::int64_t origin = 0;
  for (const std::int64_t start : s.start) origin = std::min(origin, start);
  pf::Encoder encoder(columns, {}, {}, {trace.slices.flows.source, trace.slices.flows.target},
                      trace.strings.copy(), {}, trace.strings.copy(), origin);
  std::string again = encoder.head({}, false, 0, "", "");
  again += encoder.packets(0, encoder.events());
  const pf::Trace back = pf::decode({reinterpret_cast<const std::uint8_t*>(again.data()), again.size()});
  require(back.slices.spans.name.size() == s.name.size());
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  for (const std::int64_t dur : s.dur) before += static_cast<std::uint64_t>(dur);
  for (const std::int64_t dur : back.slices.spans.dur) after += static_cast<std::uint64_t>(dur);
  require(before == after);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const pf::Bytes bytes{data, size};
  for (const auto& found : pf::find_compressed(bytes)) {
    require(found.begin < found.end && found.end <= size && found.content + found.size <= found.end);
  }
  const pf::Trace trace = pf::decode(bytes);
  check(trace, size);
  balance(trace, size);
  use(trace);
  return 0;
}
