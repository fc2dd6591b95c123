// Slices, instants and flows out of begin, end and instant events.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/perfetto/track_event.hpp"

namespace torchtrt_viz::perfetto {

// One event that has a place on a track, in the order in which the file gives them.
struct Mark {
  enum class Type : std::uint8_t { kBegin, kEnd, kInstant, kComplete };

  std::int64_t ts = 0;
  std::int64_t dur = 0;  // of a complete slice
  std::int32_t track = 0;
  std::int32_t name = kNone;
  std::int32_t category = kNone;
  std::int32_t arguments = kNone;  // row of Arguments' segments
  std::int32_t links = kNone;      // row of Marks::links
  std::int32_t work = kNone;       // row of Marks::work
  std::uint32_t packet_bytes = 0;
  std::int32_t first_flow = 0;  // in Marks::flows
  std::uint32_t flow_count = 0;
  Type type = Type::kInstant;
};

// How an event stands to work of a GPU that other packets tell of.
struct Work {
  std::optional<std::uint64_t> event;  // its own id: it is a GPU's work
  std::uint32_t sequence = 0;
  std::optional<std::uint64_t> submission;  // of the call that submitted it, which has it too
  std::int64_t pid = -1;
  std::vector<std::uint64_t> submits;  // ids of work that it submitted
  std::vector<std::uint64_t> waits;    // ids of work that it waited for
};

struct Marks {
  std::vector<Mark> marks;
  std::vector<Work> work;
  std::vector<Links> links;
  std::vector<FlowUse> flows;
};

struct Spans {
  std::vector<std::int32_t> name;
  std::vector<std::int32_t> category;
  std::vector<std::int32_t> track;
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> dur;
  std::vector<std::int64_t> correlation;
  std::vector<std::int64_t> external_id;
  std::vector<std::int64_t> corr_id;  // what ROCm's tools call the correlation
  std::vector<std::int32_t> iteration;
  std::vector<std::int32_t> run;
  std::vector<std::int32_t> begin_arguments;
  std::vector<std::int32_t> end_arguments;
};

struct Instants {
  std::vector<std::int32_t> name;
  std::vector<std::int32_t> category;
  std::vector<std::int32_t> track;
  std::vector<std::int64_t> ts;
  std::vector<std::uint8_t> unfinished;  // 1: a slice whose end is not in the file
  std::vector<std::int32_t> arguments;
};

struct Flows {
  std::vector<std::int64_t> source;  // row of Spans, -1 the event is no slice
  std::vector<std::int64_t> target;
  std::vector<std::int64_t> id;
};

struct Slices {
  Spans spans;
  Instants instants;
  Flows flows;
  std::uint64_t ends_without_begin = 0;
  std::uint64_t bytes_of_lost_ends = 0;
  std::uint64_t unfinished = 0;
};

// Row of the spans that each mark is of, -1 none.
using RowOfMark = std::vector<std::int64_t>;

// Rows come in the order of the events that begin them; `tracks` is the number of tracks.
Slices build_slices(const Marks& marks, std::size_t tracks, RowOfMark& row_of_mark);

}  // namespace torchtrt_viz::perfetto
