// The timeline index under sanitizers: extreme times, many overlaps, several readers of one index.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "columns/timeline_index.hpp"
#include "tests/check.hpp"

namespace {

using namespace torchtrt_viz;

struct Spans {
  std::vector<std::int32_t> track;
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> dur;
  std::vector<std::int32_t> name;
  std::vector<std::uint8_t> flat;

  [[nodiscard]] TimelineIndex index() const { return TimelineIndex({track, start, dur, name, flat}); }
};

Spans random_spans(std::uint64_t seed, std::size_t n, std::int64_t range) {
  std::mt19937_64 random(seed);
  Spans out;
  out.flat = {0, 1, 0, 1};
  std::uniform_int_distribution<std::int64_t> time(-range, range);
  for (std::size_t i = 0; i < n; ++i) {
    out.track.push_back(static_cast<std::int32_t>(random() % 4));
    out.start.push_back(time(random));
    out.dur.push_back(
        random() % 5 == 0 ? 0 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(range)));
    out.name.push_back(static_cast<std::int32_t>(random() % 9) - 1);
  }
  return out;
}

std::vector<std::int32_t> all_lanes(const TimelineIndex& index) {
  std::vector<std::int32_t> lanes(index.lanes().size());
  std::iota(lanes.begin(), lanes.end(), 0);
  return lanes;
}

TEST(every_span_is_on_one_lane) {
  for (const std::int64_t range :
       {std::int64_t{3}, std::int64_t{1000}, std::numeric_limits<std::int64_t>::max()}) {
    const Spans spans = random_spans(static_cast<std::uint64_t>(range), 3000, range);
    const TimelineIndex index = spans.index();
    std::vector<int> seen(spans.track.size());
    for (const Lane& lane : index.lanes()) {
      for (std::uint32_t i = lane.begin; lane.kind == LaneKind::spans && i < lane.end; ++i) {
        ++seen[index.row_numbers()[i]];
        if (i > lane.begin) CHECK(index.starts()[i] >= index.starts()[i - 1]);
      }
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
  }
}

TEST(views_of_the_whole_clock_do_not_overflow) {
  const Spans spans = random_spans(7, 2000, std::numeric_limits<std::int64_t>::max());
  const TimelineIndex index = spans.index();
  const std::vector<std::int32_t> lanes = all_lanes(index);
  const std::vector<std::uint8_t> marks(9, 1);
  constexpr auto low = std::numeric_limits<std::int64_t>::min();
  constexpr auto high = std::numeric_limits<std::int64_t>::max();
  for (const std::int32_t width : {1, 7, 65536}) {
    const View view = index.view({low, high, width, lanes, 4, 1, {marks, {}}});
    CHECK(view.mode.size() == lanes.size());
    CHECK(view.column_busy.size() % static_cast<std::size_t>(width) == 0);
  }
  (void)index.rows(low, high, lanes);
  (void)index.totals(low, high, lanes);
  for (const std::int32_t lane : lanes) {
    for (const std::int64_t t : {low, low + 1, std::int64_t{0}, high - 1, high})
      (void)index.hit(lane, t, high);
  }
}

TEST(many_overlaps_take_a_lane_each) {
  Spans spans;
  spans.flat = {0};
  constexpr std::int64_t n = 5000;
  for (std::int64_t i = 0; i < n; ++i) {  // each cuts into all before it: none encloses another
    spans.track.push_back(0);
    spans.start.push_back(i);
    spans.dur.push_back(n);
    spans.name.push_back(0);
  }
  const TimelineIndex index = spans.index();
  CHECK(index.lanes().size() == static_cast<std::size_t>(n) + 1);  // and the cover
  CHECK(index.lanes().back().kind == LaneKind::cover);
  CHECK(index.busy_ns(static_cast<std::int32_t>(n)) == 2 * n - 1);
}

TEST(several_threads_read_one_index) {
  const Spans spans = random_spans(11, 20000, 1000000);
  const TimelineIndex index = spans.index();
  const std::vector<std::int32_t> lanes = all_lanes(index);
  const View expected = index.view({-500000, 500000, 800, lanes, 50, 1000, {}});
  std::vector<int> same(4);
  std::vector<std::thread> threads;
  for (int& result : same) {
    threads.emplace_back([&] {
      const View view = index.view({-500000, 500000, 800, lanes, 50, 1000, {}});
      result = view.column_busy == expected.column_busy && view.span_row == expected.span_row ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::accumulate(same.begin(), same.end(), 0) == 4);
}

// Wide views are computed by several threads; the answer is that of one lane after the other.
TEST(a_view_of_many_lanes_is_that_of_each_lane) {
  const Spans spans = random_spans(5, 40000, 2000000);
  const TimelineIndex index = spans.index();
  const std::vector<std::int32_t> lanes = all_lanes(index);
  const std::vector<std::uint8_t> marks{0, 1, 0, 1, 1, 0, 0, 0};
  constexpr std::int32_t width = 3000;
  CHECK(lanes.size() * width > 400000);
  const View all = index.view({-1500000, 1900000, width, lanes, 3, 0, {marks, {}}});
  std::size_t columns = 0;
  std::size_t rows = 0;
  for (const std::int32_t lane : lanes) {
    const std::vector<std::int32_t> one{lane};
    const View alone = index.view({-1500000, 1900000, width, one, 3, 0, {marks, {}}});
    CHECK(all.mode[static_cast<std::size_t>(lane)] == alone.mode[0]);
    for (std::size_t k = 0; k < alone.column_busy.size(); ++k, ++columns) {
      CHECK(all.column_busy[columns] == alone.column_busy[k]);
      CHECK(all.column_marked[columns] == alone.column_marked[k]);
      CHECK(all.column_busy[columns] == 0 ||
            all.names[all.column_name[columns]] == alone.names[alone.column_name[k]]);
    }
    for (std::size_t k = 0; k < alone.span_row.size(); ++k, ++rows)
      CHECK(all.span_row[rows] == alone.span_row[k]);
  }
  CHECK(columns == all.column_busy.size() && rows == all.span_row.size());
}

TEST(a_lane_that_is_not_there_is_refused_before_any_thread_starts) {
  const TimelineIndex index = random_spans(5, 100, 1000).index();
  std::vector<std::int32_t> lanes(4000, 0);
  lanes.back() = 1 << 20;
  const auto failure = test::failure_of([&] { (void)index.view({0, 1000, 1000, lanes, 0, 0, {}}); });
  CHECK_EQUAL(failure.code(), Code::invalid_argument);
  CHECK(test::says(failure, "lane"));
}

TEST(counts_by_name_leave_covers_out) {
  const Spans spans = random_spans(3, 5000, 4000);
  const TimelineIndex index = spans.index();
  std::vector<std::int64_t> expected(8);
  for (const std::int32_t name : spans.name) {
    if (name >= 0) ++expected[static_cast<std::size_t>(name)];
  }
  CHECK(index.name_counts() == expected);
}

}  // namespace
