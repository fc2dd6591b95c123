// Everything that a trace-event file gives, as columns.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/column.hpp"
#include "formats/io/interner.hpp"

namespace torchtrt_viz::kineto {

struct Strings {
  Interner names;       // of events, counters and their series; still escaped
  Interner categories;  // still escaped
  Interner idents;      // process, thread and textual ids; still escaped
};

enum class LaneType : std::uint8_t { thread, stream, async, counter };

// A row of the timeline: a thread of the host, a stream of a device, ...
struct Lane {
  LaneType type = LaneType::thread;
  std::uint32_t process = Interner::kNone;
  std::uint32_t thread = Interner::kNone;
  std::uint32_t label = Interner::kNone;  // name of asynchronous work
  std::int64_t device = kNoDevice;

  static constexpr std::int64_t kNoDevice = INT64_MIN;
};

struct Spans {
  Column<std::uint32_t> name;
  Column<std::uint8_t> kind;
  Column<std::uint8_t> domain;
  Column<std::int32_t> lane;
  Column<std::int64_t> start;
  Column<std::int64_t> dur;
  Column<std::int64_t> correlation;
  Column<std::int64_t> external_id;
  Column<std::int64_t> at;  // byte offset of the event

  [[nodiscard]] std::size_t size() const { return start.size(); }
};

enum class InstantState : std::uint8_t { instant, unfinished, invalid };

struct Instants {
  Column<std::uint32_t> name;
  Column<std::uint8_t> kind;
  Column<std::uint8_t> domain;
  Column<std::uint8_t> state;
  Column<std::int32_t> lane;
  Column<std::int64_t> ts;
  Column<std::int64_t> at;
};

struct Counters {
  Column<std::uint32_t> counter;  // number of the (counter, series) in `Tables::series`
  Column<std::int32_t> lane;
  Column<std::int64_t> ts;
  Column<double> value;
};

struct Flows {
  Column<std::uint32_t> category;
  Column<std::int64_t> source;
  Column<std::int64_t> target;
  Column<std::int64_t> id;
};

// A span that states its own number and its caller's, as torch's Python tracer writes them.
struct PythonCall {
  std::int64_t row = 0;
  std::uint32_t process = Interner::kNone;
  std::int64_t id = -1;
  std::int64_t parent = -1;
};

// What became of the events of the list: each is counted once.
struct Counts {
  std::uint64_t complete = 0;  // spans, or instants where the duration is unknown
  std::uint64_t instants = 0;
  std::uint64_t counters = 0;
  std::uint64_t flows = 0;
  std::uint64_t begins = 0;
  std::uint64_t ends = 0;
  std::uint64_t metadata = 0;
  std::uint64_t left_out = 0;
};

// What metadata events say about a process or a thread.
struct Label {
  std::uint32_t process = Interner::kNone;
  std::uint32_t thread = Interner::kNone;
  bool of_thread = false;
  std::string name;    // UTF-8
  std::string labels;  // UTF-8
  std::int64_t sort_index = 0;
  bool has_sort_index = false;
};

struct SeriesName {
  std::uint32_t counter = Interner::kNone;  // name of the counter
  std::uint32_t series = Interner::kNone;   // name of the series
  std::string id;                           // distinguishes counters of one name; usually empty
  bool memory = false;                      // bytes of an allocator, made from allocation events
};

}  // namespace torchtrt_viz::kineto
