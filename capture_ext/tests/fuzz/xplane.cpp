// libFuzzer harness of the reader of XPlanes.
//
// A short run is part of the test suite (tests/fuzz/test_fuzz_xplane.py), which also makes seeds. For a long
// one:
//
//   clang++-14 -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I capture_ext
//     capture_ext/tests/fuzz/xplane.cpp capture_ext/formats/xplane/*.cpp capture_ext/formats/io/interner.cpp
//     -o fuzz_xplane
//   mkdir -p seeds found && cp ../shared/corpus/writers/*.xplane.pb seeds/
//   ./fuzz_xplane -max_total_time=3600 -max_len=65536 -timeout=10 -rss_limit_mb=1024 found seeds
//
// (one line each).
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "formats/xplane/decoder.hpp"

namespace xplane = torchtrt_viz::xplane;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// What the Python side relies on.
void check(const xplane::Stats& stats, std::size_t rows, std::size_t strings) {
  require(stats.begin.size() == rows + 1);
  require(stats.begin[0] == 0 && stats.begin[rows] == static_cast<std::int64_t>(stats.name.size()));
  for (std::size_t i = 0; i < rows; ++i) require(stats.begin[i] <= stats.begin[i + 1]);
  require(stats.type.size() == stats.name.size() && stats.value.size() == stats.name.size());
  for (std::size_t i = 0; i < stats.name.size(); ++i) {
    require(stats.name[i] < strings || stats.name[i] == torchtrt_viz::Interner::kNone);
    require(stats.type[i] <= 5);
    if (stats.type[i] == static_cast<std::uint8_t>(xplane::Type::kText))
      require(static_cast<std::uint64_t>(stats.value[i]) < strings);
  }
}

void check(const xplane::Space& space, std::size_t size) {
  const std::size_t strings = space.strings.size();
  const std::size_t planes = space.planes.id.size(), lines = space.lines.id.size();
  const std::size_t kinds = space.kinds.id.size(), events = space.events.kind.size();
  require(planes + lines + kinds + events <= size);
  check(space.planes.stats, planes, strings);
  check(space.kinds.stats, kinds, strings);
  check(space.events.stats, events, strings);
  require(space.lines.event_begin.size() == lines + 1);
  require(space.lines.event_begin[lines] == static_cast<std::int64_t>(events));
  if (lines > 0) require(space.lines.event_begin[0] == 0);
  for (std::size_t i = 0; i < lines; ++i) {
    require(space.lines.event_begin[i] <= space.lines.event_begin[i + 1]);
    require(space.lines.plane[i] < planes && space.lines.name[i] < strings &&
            space.lines.display_name[i] < strings);
  }
  for (std::size_t i = 0; i < planes; ++i) require(space.planes.name[i] < strings);
  for (std::size_t i = 0; i < kinds; ++i) {
    require(space.kinds.plane[i] < planes && space.kinds.name[i] < strings &&
            space.kinds.display_name[i] < strings);
    require(space.kinds.bytes[i] >= 0 && static_cast<std::size_t>(space.kinds.bytes[i]) <= size);
  }
  for (std::size_t i = 0; i < events; ++i) {
    require(space.events.kind[i] >= -1 && space.events.kind[i] < static_cast<std::int64_t>(kinds));
    require(space.events.place[i] <= 2);
  }
  for (const xplane::Tally& tally : space.problems) require(tally.count == 0 || tally.offset <= size);
  require(space.lost_bytes <= size && space.plane_bytes <= size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(xplane::decode({data, size}), size);
  return 0;
}
