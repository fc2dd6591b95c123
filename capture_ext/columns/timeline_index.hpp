// Level-of-detail index of a timeline: any view of ten million spans in milliseconds, without approximation.
//
// Spans are laid out in lanes in which no two of them overlap. A lane's spans, sorted by start, with running
// sums of their durations answer "how much of this pixel column is busy" exactly with two binary searches; a
// tree of the longest span of every block answers "which span fills most of it".
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace torchtrt_viz {

class Marks;

// A track with several lanes also has a cover: the union of its spans, which is what it looks like collapsed.
enum class LaneKind : std::uint8_t { spans = 0, cover = 1 };

struct Lane {
  std::int32_t track;
  std::int32_t sub;  // row within the track, 0 outermost; -1 for the cover
  LaneKind kind;
  std::uint32_t begin;  // positions of its first and past its last span in the index's columns
  std::uint32_t end;
};

struct TimelineColumns {
  std::span<const std::int32_t> track;
  std::span<const std::int64_t> start_ns;
  std::span<const std::int64_t> dur_ns;  // 0 or more
  std::span<const std::int32_t> name;    // code of the name, -1 none
  std::span<const std::uint8_t> flat;    // per track: 1 lays overlaps on the first free lane, 0 nests
};

// Which spans are wanted: those whose name, or whose row, has a non-zero byte. Both empty: none.
struct Marked {
  std::span<const std::uint8_t> names;
  std::span<const std::uint8_t> rows;
  [[nodiscard]] bool any() const { return !names.empty() || !rows.empty(); }
};

struct ViewRequest {
  std::int64_t t0 = 0;
  std::int64_t t1 = 0;
  std::int32_t width = 0;               // pixel columns
  std::span<const std::int32_t> lanes;  // wanted lanes
  std::uint32_t exact_limit = 0;        // up to so many spans in sight are sent as they are
  std::int64_t wide_ns = 0;  // in lanes of columns, spans this long are sent as well (for their text)
  Marked marked;
};

// Per lane: its spans when they are few, else one value per pixel column. Columns of the same index belong
// together.
struct View {
  std::vector<std::uint8_t> mode;  // per lane: 0 nothing in sight, 1 spans, 2 columns (and the wide spans)
  std::vector<std::uint32_t> span_begin;  // per lane + 1: where its spans begin
  std::vector<std::int64_t> span_start;
  std::vector<std::int64_t> span_dur;
  std::vector<std::uint32_t> span_row;
  std::vector<std::uint16_t> span_name;     // into `names`
  std::vector<std::uint8_t> span_marked;    // empty when nothing is marked
  std::vector<std::uint8_t> column_busy;    // per column lane and pixel: 0 nothing, else 1..255 of the column
  std::vector<std::uint16_t> column_name;   // name of the span that fills most of it, into `names`
  std::vector<std::uint8_t> column_marked;  // the same for marked spans; empty when nothing is marked
  std::vector<std::int32_t> names;          // codes; the last index (65535) stands for "one of too many"
};

// Exact contents of every pixel column of one lane.
struct Columns {
  std::vector<std::int64_t> busy_ns;
  std::vector<std::int64_t> longest_row;  // row of the span that fills most of the column, -1 none
  std::vector<std::int64_t> count;        // spans that touch the column
};

// What lies in a range, by name: codes (-1 for spans without a name), spans, and their time inside the range.
struct Totals {
  std::vector<std::int32_t> name;
  std::vector<std::int64_t> count;
  std::vector<std::int64_t> inside_ns;
};

// A place in the order of a search: a time, the lane there (-1 before all), and the span (row -1: all that
// start at the time).
struct Spot {
  std::int64_t t = 0;
  std::int32_t lane = -1;
  std::int64_t row = -1;
};

struct Hit {
  std::int64_t row = -1;  // -1: nothing
  std::int32_t lane = -1;
  std::int64_t start_ns = 0;
  std::int64_t dur_ns = 0;
};

class TimelineIndex {
 public:
  // Throws std::invalid_argument for columns of different lengths, tracks out of range or negative
  // durations, std::length_error beyond 2^32 - 1 spans.
  explicit TimelineIndex(const TimelineColumns& columns);

  [[nodiscard]] const std::vector<Lane>& lanes() const { return lanes_; }
  [[nodiscard]] std::int64_t first_ns() const { return first_ns_; }
  [[nodiscard]] std::int64_t last_ns() const { return last_ns_; }
  [[nodiscard]] std::int64_t busy_ns(std::int32_t lane) const;
  [[nodiscard]] std::size_t bytes() const;

  [[nodiscard]] View view(const ViewRequest& request) const;
  [[nodiscard]] Columns columns(std::int64_t t0, std::int64_t t1, std::int32_t width,
                                std::int32_t lane) const;

  // The span under `t`, else the nearest one whose edge is within `tolerance`.
  [[nodiscard]] Hit hit(std::int32_t lane, std::int64_t t, std::int64_t tolerance) const;
  // The span before (step < 0) or after the one at `row`, which starts at `start_ns`, in its lane.
  [[nodiscard]] Hit neighbour(std::int32_t lane, std::int64_t start_ns, std::int64_t row, int step) const;
  // The lane of a span.
  [[nodiscard]] Hit locate(std::int32_t track, std::int64_t start_ns, std::int64_t row) const;
  // Rows of the spans of `lanes` that touch [t0, t1], by lane and start.
  [[nodiscard]] std::vector<std::int64_t> rows(std::int64_t t0, std::int64_t t1,
                                               std::span<const std::int32_t> lanes) const;
  [[nodiscard]] Totals totals(std::int64_t t0, std::int64_t t1, std::span<const std::int32_t> lanes) const;
  // The first marked span after (forward), or the last before, a place, ordered by start, then lane, then
  // position in the lane. `lanes` says where to look, in the order of the screen.
  [[nodiscard]] Hit next_marked(const Marked& marked, std::span<const std::int32_t> lanes, const Spot& from,
                                bool forward) const;
  // How many marked spans of `lanes` come before a place or are at it, in the same order.
  [[nodiscard]] std::int64_t marked_until(const Marked& marked, std::span<const std::int32_t> lanes,
                                          const Spot& until) const;
  // How many spans of each lane are marked.
  [[nodiscard]] std::vector<std::int64_t> count_marked(const Marked& marked) const;
  // How many spans carry each name, by code. What lies in covers is not counted twice.
  [[nodiscard]] const std::vector<std::int64_t>& name_counts() const { return name_counts_; }

  // The index's own columns, lane after lane, for those who want to send them whole.
  [[nodiscard]] std::span<const std::int64_t> starts() const { return start_; }
  [[nodiscard]] std::span<const std::int32_t> names() const { return name_; }
  [[nodiscard]] std::span<const std::uint32_t> row_numbers() const { return row_; }
  [[nodiscard]] std::vector<std::int64_t> durations() const;

 private:
  struct Cell;
  struct LaneView;
  struct Bounds;
  class Walk;

  [[nodiscard]] std::int64_t dur(std::size_t i) const {
    return static_cast<std::int64_t>(before_[i + 1] - before_[i]);
  }
  [[nodiscard]] std::int64_t end(std::size_t i) const { return start_[i] + dur(i); }
  [[nodiscard]] const Lane& lane_at(std::int32_t lane) const;
  [[nodiscard]] std::size_t first_starting_at(const Lane& lane, std::int64_t t) const;
  [[nodiscard]] std::pair<std::size_t, std::size_t> in_sight(const Lane& lane, std::int64_t t0,
                                                             std::int64_t t1) const;
  [[nodiscard]] Bounds around(const Lane& lane, std::ptrdiff_t side, const Spot& spot) const;
  [[nodiscard]] std::size_t longest(std::size_t from, std::size_t to) const;
  void wide(std::size_t from, std::size_t to, std::int64_t at_least, std::vector<std::uint32_t>& out) const;
  [[nodiscard]] LaneView look_at(const Lane& lane, const ViewRequest& request,
                                 const std::vector<std::int64_t>& edges, const Marks& marks) const;
  [[nodiscard]] std::vector<std::uint8_t> marked_columns(std::size_t from, std::size_t to,
                                                         const std::vector<std::int64_t>& edges,
                                                         const Marks& marks) const;
  void grow_tree();

  std::vector<Lane> lanes_;
  std::vector<std::int64_t> start_;
  std::vector<std::uint64_t> before_;  // sum of all durations before a position (modulo 2^64), one longer
  std::vector<std::int32_t> name_;
  std::vector<std::uint32_t> row_;
  std::vector<std::vector<std::uint32_t>> tree_;  // per level: position of the longest span of each block
  std::vector<std::uint32_t> lanes_of_track_;     // per track + 1: its lanes in lanes_
  std::vector<std::int64_t> name_counts_;         // per name code: its spans
  std::size_t names_ = 0;                         // one more than the largest name code
  std::int64_t first_ns_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace torchtrt_viz
