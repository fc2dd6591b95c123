// What a timeline index answers about a stretch of time: its spans, or one value per pixel column.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>

#include "columns/lane_layout.hpp"
#include "columns/marks.hpp"
#include "columns/timeline_index.hpp"
#include "core/error.hpp"

namespace torchtrt_viz {
namespace {

constexpr std::uint16_t kTooManyNames = 0xffff;
constexpr std::size_t kCellsAThread = 200'000;  // fewer are done before a thread has started
constexpr std::size_t kMostThreads = 4;

std::uint8_t shade(std::uint64_t part, std::uint64_t whole, bool any) {
  if (!any) return 0;
  if (whole == 0) return 255;  // a view finer than the clock: the column lies inside a span
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  // Shares are positive, and std::lround is a call for every cell.
  // NOLINTNEXTLINE(bugprone-incorrect-roundings)
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(share * 255.0 + 0.5), 1, 255));
}

std::vector<std::int64_t> edges_of(std::int64_t t0, std::int64_t t1, std::int32_t width) {
  if (t1 <= t0) throw Error(Code::invalid_argument, "a view needs t1 > t0");
  if (width < 1 || width > 65536) throw Error(Code::invalid_argument, "a view is 1 to 65536 columns wide");
  std::vector<std::int64_t> edges(static_cast<std::size_t>(width) + 1);
  const auto range =
      static_cast<unsigned __int128>(static_cast<std::uint64_t>(t1) - static_cast<std::uint64_t>(t0));
  for (std::size_t k = 0; k < edges.size(); ++k) {
    const auto offset = static_cast<std::uint64_t>(range * k / static_cast<std::uint32_t>(width));
    edges[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(t0) + offset);
  }
  return edges;
}

// Numbers the names of one view, so that a cell needs two bytes for its name.
class LocalNames {
 public:
  LocalNames(std::size_t known, std::vector<std::int32_t>& out)
      : local_(known + 1, kTooManyNames), out_(out) {}

  std::uint16_t operator()(std::int32_t code) {
    std::uint16_t& local = local_[static_cast<std::size_t>(std::int64_t{code} + 1)];
    if (local == kTooManyNames && out_.size() < kTooManyNames) {
      local = static_cast<std::uint16_t>(out_.size());
      out_.push_back(code);
    }
    return local;
  }

 private:
  std::vector<std::uint16_t> local_;
  std::vector<std::int32_t>& out_;
};

// Calls work(0) ... work(count - 1), on several threads where that many pixel columns are worth it. The first
// exception of any of them is thrown here, after all have ended.
template <typename Work>
void for_each_lane(std::size_t count, std::size_t cells, const Work& work) {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t helpers =
      std::min({cores, kMostThreads, count, cells / kCellsAThread + 1}) - (count > 0 ? 1 : 0);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failing;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(failing);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(helpers);
  for (std::size_t i = 0; i < helpers; ++i) {
    try {
      threads.emplace_back(run);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: this one does it all
    }
  }
  run();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

// What one pixel column of a lane holds.
struct TimelineIndex::Cell {
  std::uint64_t width;
  std::uint64_t busy;
  std::size_t longest;  // position; meaningless when count is 0
  std::int64_t count;
};

// Steps through a lane from column to column.
class TimelineIndex::Walk {
 public:
  Walk(const TimelineIndex& index, const Lane& lane, std::int64_t t0)
      : index_(index),
        lane_(lane),
        at_(index.first_starting_at(lane, t0)),
        busy_before_(busy_until(at_, t0)),
        t_(t0) {}

  Cell to(std::int64_t t) {
    const std::size_t from = at_;
    at_ = gallop(t);
    const std::uint64_t busy = busy_until(at_, t);
    Cell cell{between(t_, t), busy - busy_before_, 0, static_cast<std::int64_t>(at_ - from)};
    std::int64_t best = -1;
    if (at_ > from) {
      cell.longest = at_ - 1;
      best = std::min(index_.end(at_ - 1), t) - index_.start_[at_ - 1];
      if (at_ - 1 > from) {
        const std::size_t inner = index_.longest(from, at_ - 1);
        if (index_.dur(inner) >= best) {
          best = index_.dur(inner);
          cell.longest = inner;
        }
      }
    }
    if (from > lane_.begin && index_.end(from - 1) > t_) {
      ++cell.count;
      if (std::min(index_.end(from - 1), t) - t_ >= best) cell.longest = from - 1;
    }
    busy_before_ = busy;
    t_ = t;
    return cell;
  }

 private:
  // Position of the first span that starts at `t` or later; most steps are short.
  [[nodiscard]] std::size_t gallop(std::int64_t t) const {
    std::size_t from = at_;
    std::size_t step = 1;
    while (from + step < lane_.end && index_.start_[from + step] < t) {
      from += step;
      step *= 2;
    }
    const auto first = index_.start_.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last =
        index_.start_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(from + step, lane_.end));
    return static_cast<std::size_t>(std::lower_bound(first, last, t) - index_.start_.begin());
  }

  // Time before `t` that is covered by the spans before position `at`, of which only the last can reach
  // beyond.
  [[nodiscard]] std::uint64_t busy_until(std::size_t at, std::int64_t t) const {
    std::uint64_t busy = index_.before_[at];
    if (at > lane_.begin && index_.end(at - 1) > t)
      busy -= static_cast<std::uint64_t>(index_.end(at - 1) - t);
    return busy;
  }

  const TimelineIndex& index_;
  const Lane& lane_;
  std::size_t at_;
  std::uint64_t busy_before_;
  std::int64_t t_;
};

// One lane of a view, before its names are numbered.
struct TimelineIndex::LaneView {
  std::uint8_t mode = 0;
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<std::uint8_t> busy;
  std::vector<std::int32_t> name;  // meaningless where nothing is
  std::vector<std::uint8_t> marked;
  std::vector<std::uint32_t> wide;
};

TimelineIndex::LaneView TimelineIndex::look_at(const Lane& lane, const ViewRequest& request,
                                               const std::vector<std::int64_t>& edges,
                                               const Marks& marks) const {
  LaneView out;
  std::tie(out.from, out.to) = in_sight(lane, request.t0, request.t1);
  if (out.from == out.to) return out;
  out.mode = out.to - out.from <= request.exact_limit ? 1 : 2;
  if (out.mode == 1) return out;
  const auto width = static_cast<std::size_t>(request.width);
  out.busy.resize(width);
  out.name.resize(width);
  Walk walk(*this, lane, request.t0);
  for (std::size_t k = 0; k < width; ++k) {
    const Cell cell = walk.to(edges[k + 1]);
    out.busy[k] = shade(cell.busy, cell.width, cell.count > 0);
    if (cell.count > 0) out.name[k] = name_[cell.longest];
  }
  if (marks.any()) out.marked = marked_columns(out.from, out.to, edges, marks);
  if (request.wide_ns > 0) wide(out.from, out.to, request.wide_ns, out.wide);
  return out;
}

std::vector<std::uint8_t> TimelineIndex::marked_columns(std::size_t from, std::size_t to,
                                                        const std::vector<std::int64_t>& edges,
                                                        const Marks& marks) const {
  std::vector<std::uint8_t> out(edges.size() - 1);
  marks.with_test([&](auto is_marked) {
    std::size_t i = from;
    std::int64_t reach = edges.front();  // how far the last marked span of an earlier column reaches
    if (start_[i] < reach) {
      if (is_marked(name_[i], row_[i])) reach = end(i);
      ++i;
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      const std::int64_t right = edges[k + 1];
      const bool entered = reach > edges[k];
      std::uint64_t busy = entered ? between(edges[k], std::min(reach, right)) : 0;
      std::uint64_t any = entered ? 1 : 0;
      const std::size_t first = i;
      for (; i < to && start_[i] < right; ++i) {  // without a branch on the mark, which nobody can predict
        const std::uint64_t mark = is_marked(name_[i], row_[i]) ? 1 : 0;
        busy += (before_[i + 1] - before_[i]) & (0 - mark);
        any |= mark;
      }
      // Spans of one lane do not overlap: only the last can stick out of the column.
      if (i > first && end(i - 1) > right && is_marked(name_[i - 1], row_[i - 1])) {
        reach = end(i - 1);
        busy -= between(right, reach);
      }
      out[k] = shade(busy, between(edges[k], right), any != 0);
    }
  });
  return out;
}

View TimelineIndex::view(const ViewRequest& request) const {
  const std::vector<std::int64_t> edges = edges_of(request.t0, request.t1, request.width);
  const auto width = static_cast<std::size_t>(request.width);
  const Marks marks(request.marked, names_);
  const std::size_t count = request.lanes.size();
  for (const std::int32_t wanted : request.lanes) (void)lane_at(wanted);
  std::vector<LaneView> seen(count);
  for_each_lane(count, count * width,
                [&](std::size_t i) { seen[i] = look_at(lane_at(request.lanes[i]), request, edges, marks); });

  View out;
  LocalNames local(names_, out.names);
  const auto give_span = [&](std::size_t i) {
    out.span_start.push_back(start_[i]);
    out.span_dur.push_back(dur(i));
    out.span_row.push_back(row_[i]);
    out.span_name.push_back(local(name_[i]));
    if (marks.any()) out.span_marked.push_back(marks.of(name_[i], row_[i]) ? 1 : 0);
  };
  std::size_t columns = 0;
  for (const LaneView& lane : seen) columns += lane.busy.size();
  out.mode.reserve(count);
  out.column_busy.reserve(columns);
  out.column_name.reserve(columns);
  if (marks.any()) out.column_marked.reserve(columns);
  out.span_begin.push_back(0);
  for (const LaneView& lane : seen) {
    out.mode.push_back(lane.mode);
    if (lane.mode == 1) {
      for (std::size_t i = lane.from; i < lane.to; ++i) give_span(i);
    }
    out.column_busy.insert(out.column_busy.end(), lane.busy.begin(), lane.busy.end());
    for (std::size_t k = 0; k < lane.busy.size(); ++k)
      out.column_name.push_back(lane.busy[k] != 0 ? local(lane.name[k]) : 0);
    out.column_marked.insert(out.column_marked.end(), lane.marked.begin(), lane.marked.end());
    for (const std::uint32_t i : lane.wide) give_span(i);
    out.span_begin.push_back(static_cast<std::uint32_t>(out.span_start.size()));
  }
  return out;
}

Columns TimelineIndex::columns(std::int64_t t0, std::int64_t t1, std::int32_t width,
                               std::int32_t lane) const {
  const std::vector<std::int64_t> edges = edges_of(t0, t1, width);
  Columns out;
  Walk walk(*this, lane_at(lane), t0);
  for (std::size_t k = 0; k + 1 < edges.size(); ++k) {
    const Cell cell = walk.to(edges[k + 1]);
    out.busy_ns.push_back(static_cast<std::int64_t>(cell.busy));
    out.longest_row.push_back(cell.count > 0 ? static_cast<std::int64_t>(row_[cell.longest]) : -1);
    out.count.push_back(cell.count);
  }
  return out;
}

}  // namespace torchtrt_viz
