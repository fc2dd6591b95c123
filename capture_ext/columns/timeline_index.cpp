#include "columns/timeline_index.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

namespace torchtrt_viz {
namespace {

constexpr std::size_t kFanOut = 32;
constexpr std::uint16_t kTooManyNames = 0xffff;
constexpr std::int64_t kLastTime = std::numeric_limits<std::int64_t>::max();

struct Key {
  std::int64_t start;
  std::int64_t dur;
  std::uint32_t row;
};

// The order in which a span comes after whatever encloses it.
bool before(const Key& a, const Key& b) {
  if (a.start != b.start) return a.start < b.start;
  if (a.dur != b.dur) return a.dur > b.dur;
  return a.row < b.row;
}

// Finds the first lane from a given one on that is free at a time. A handful of lanes is scanned; hundreds
// of them (thousands of requests in flight at once) are searched in a tree of minima, so that a hostile file
// cannot make the layout quadratic.
class FreeLanes {
 public:
  std::uint32_t take(std::uint32_t from, std::int64_t start, std::int64_t end) {
    const std::uint32_t lane = find(from, start);
    if (lane == ends_.size()) {
      ends_.push_back(end);
      if (ends_.size() > kScanned) rebuild_if_full();
    } else {
      ends_[lane] = end;
    }
    if (!tree_.empty()) update(lane);
    return lane;
  }

 private:
  static constexpr std::size_t kScanned = 48;

  [[nodiscard]] std::uint32_t find(std::uint32_t from, std::int64_t start) const {
    const auto count = static_cast<std::uint32_t>(ends_.size());
    if (tree_.empty()) {
      std::uint32_t lane = from;
      while (lane < count && ends_[lane] > start) ++lane;
      return std::min(lane, count);
    }
    const std::size_t leaf = descend(1, 0, leaves_, from, start);
    return leaf == kNone ? count : static_cast<std::uint32_t>(std::min<std::size_t>(leaf, count));
  }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // First leaf >= from whose end is <= start.
  [[nodiscard]] std::size_t descend(std::size_t node, std::size_t lo, std::size_t hi, std::size_t from,
                                    std::int64_t start) const {
    if (hi <= from || tree_[node] > start) return kNone;
    if (hi - lo == 1) return lo;
    const std::size_t mid = (lo + hi) / 2;
    const std::size_t left = descend(2 * node, lo, mid, from, start);
    return left != kNone ? left : descend(2 * node + 1, mid, hi, from, start);
  }

  void rebuild_if_full() {
    if (!tree_.empty() && ends_.size() <= leaves_) return;
    leaves_ = std::bit_ceil(2 * ends_.size());
    tree_.assign(2 * leaves_, kLastTime);
    for (std::size_t i = 0; i < ends_.size(); ++i) tree_[leaves_ + i] = ends_[i];
    for (std::size_t node = leaves_ - 1; node > 0; --node) {
      tree_[node] = std::min(tree_[2 * node], tree_[2 * node + 1]);
    }
  }

  void update(std::uint32_t lane) {
    std::size_t node = leaves_ + lane;
    tree_[node] = ends_[lane];
    while (node > 1) {
      node /= 2;
      tree_[node] = std::min(tree_[2 * node], tree_[2 * node + 1]);
    }
  }

  std::vector<std::int64_t> ends_;
  std::vector<std::int64_t> tree_;
  std::size_t leaves_ = 0;
};

struct Open {
  std::int64_t end;
  std::uint32_t lane;
};

// Assigns a lane to every span of one sorted track.
std::uint32_t lay_out(const std::vector<Key>& keys, bool flat, std::vector<std::uint32_t>& lane_of) {
  FreeLanes lanes;
  std::vector<Open> open;  // spans that may still enclose a later one: see nest()
  std::uint32_t used = 0;
  lane_of.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::int64_t start = keys[i].start;
    const std::int64_t end = start + keys[i].dur;
    std::uint32_t from = 0;
    if (!flat) {
      while (!open.empty() && (open.back().end <= start || open.back().end < end)) open.pop_back();
      if (!open.empty()) from = open.back().lane + 1;
    }
    const std::uint32_t lane = lanes.take(from, start, end);
    lane_of[i] = lane;
    used = std::max(used, lane + 1);
    if (!flat) open.push_back({end, lane});
  }
  return used;
}

struct Cover {
  std::int64_t start;
  std::int64_t end;
  std::uint32_t row;
  std::int64_t longest;
};

// The union of a sorted track's spans; spans that only touch stay apart. `cut` tells whether a span reaches
// beyond the one that it starts in: without that, the union is what lies on the outermost lane.
std::vector<Cover> unite(const std::vector<Key>& keys, bool& cut) {
  std::vector<Cover> out;
  cut = false;
  for (const Key& key : keys) {
    const std::int64_t end = key.start + key.dur;
    if (out.empty() || key.start >= out.back().end) {
      out.push_back({key.start, end, key.row, key.dur});
      continue;
    }
    Cover& last = out.back();
    if (end > last.end) {
      cut = true;
      last.end = end;
    }
    if (key.dur > last.longest) {
      last.longest = key.dur;
      last.row = key.row;
    }
  }
  return out;
}

// From `from` to the later `to`; the whole clock does not fit into a signed number.
std::uint64_t between(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

std::uint8_t shade(std::uint64_t part, std::uint64_t whole, bool any) {
  if (!any) return 0;
  if (whole == 0) return 255;  // a view finer than the clock: the column lies inside a span
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(share * 255.0 + 0.5), 1, 255));
}

std::vector<std::int64_t> edges_of(std::int64_t t0, std::int64_t t1, std::int32_t width) {
  if (t1 <= t0) throw std::invalid_argument("a view needs t1 > t0");
  if (width < 1 || width > 65536) throw std::invalid_argument("a view is 1 to 65536 columns wide");
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
    std::uint16_t& local = local_[static_cast<std::size_t>(code + 1)];
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

}  // namespace

TimelineIndex::TimelineIndex(const TimelineColumns& columns) {
  const std::size_t n = columns.track.size();
  if (columns.start_ns.size() != n || columns.dur_ns.size() != n || columns.name.size() != n) {
    throw std::invalid_argument("track, start_ns, dur_ns and name differ in length");
  }
  if (n >= std::numeric_limits<std::uint32_t>::max() / 2) {
    throw std::length_error("the timeline index holds up to 2^31 spans");
  }
  const std::size_t tracks = columns.flat.size();
  std::vector<std::uint32_t> of_track(tracks + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t track = columns.track[i];
    if (track < 0 || static_cast<std::size_t>(track) >= tracks) {
      throw std::invalid_argument("track " + std::to_string(track) + " outside 0.." + std::to_string(tracks));
    }
    if (columns.dur_ns[i] < 0) throw std::invalid_argument("a duration is negative");
    if (columns.name[i] < -1) throw std::invalid_argument("a name code is below -1");
    names_ = std::max(names_, static_cast<std::size_t>(columns.name[i] + 1));
    ++of_track[static_cast<std::size_t>(track) + 1];
  }
  for (std::size_t t = 0; t < tracks; ++t) of_track[t + 1] += of_track[t];

  std::vector<std::uint32_t> order(n);
  {
    std::vector<std::uint32_t> next(of_track.begin(), of_track.end() - 1);
    for (std::size_t i = 0; i < n; ++i) {
      order[next[static_cast<std::size_t>(columns.track[i])]++] = static_cast<std::uint32_t>(i);
    }
  }

  start_.resize(n);
  name_.resize(n);
  row_.resize(n);
  std::vector<std::int64_t> dur(n);
  std::vector<Key> keys;
  std::vector<std::uint32_t> lane_of;
  bool empty = true;
  std::vector<std::pair<std::size_t, std::vector<Cover>>> covers;
  lanes_of_track_.assign(tracks + 1, 0);
  for (std::size_t t = 0; t < tracks; ++t) {
    const std::uint32_t from = of_track[t];
    const std::uint32_t to = of_track[t + 1];
    lanes_of_track_[t] = static_cast<std::uint32_t>(lanes_.size());
    if (from == to) continue;
    keys.resize(to - from);
    for (std::uint32_t i = from; i < to; ++i) {
      const std::uint32_t row = order[i];
      const std::int64_t start = columns.start_ns[row];
      // An end beyond the clock can only come from a damaged file.
      std::int64_t end = 0;
      const bool over = __builtin_add_overflow(start, columns.dur_ns[row], &end);
      keys[i - from] = {start, over ? kLastTime - start : columns.dur_ns[row], row};
    }
    if (!std::is_sorted(keys.begin(), keys.end(), before)) std::sort(keys.begin(), keys.end(), before);
    const std::uint32_t used = lay_out(keys, columns.flat[t] != 0, lane_of);

    std::vector<std::uint32_t> next(used + 1, 0);
    for (const std::uint32_t lane : lane_of) ++next[lane + 1];
    next[0] = from;
    for (std::uint32_t lane = 0; lane < used; ++lane) {
      next[lane + 1] += next[lane];
      lanes_.push_back({static_cast<std::int32_t>(t), static_cast<std::int32_t>(lane), LaneKind::spans,
                        next[lane], next[lane + 1]});
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::uint32_t at = next[lane_of[i]]++;
      start_[at] = keys[i].start;
      dur[at] = keys[i].dur;
      row_[at] = keys[i].row;
      name_[at] = columns.name[keys[i].row];
    }
    if (used > 1) {
      bool cut = false;
      std::vector<Cover> united = unite(keys, cut);
      if (cut) {
        covers.emplace_back(lanes_.size(), std::move(united));
        lanes_.push_back({static_cast<std::int32_t>(t), -1, LaneKind::cover, 0, 0});
      }
    }
    std::int64_t last = keys.front().start;
    for (const Key& key : keys) last = std::max(last, key.start + key.dur);
    first_ns_ = empty ? keys.front().start : std::min(first_ns_, keys.front().start);
    last_ns_ = empty ? last : std::max(last_ns_, last);
    empty = false;
  }
  lanes_of_track_[tracks] = static_cast<std::uint32_t>(lanes_.size());

  std::size_t whole = n;
  for (const auto& [lane, united] : covers) whole += united.size();
  start_.reserve(whole);
  dur.reserve(whole);
  row_.reserve(whole);
  name_.reserve(whole);
  for (auto& [lane, united] : covers) {
    lanes_[lane].begin = static_cast<std::uint32_t>(start_.size());
    for (const Cover& cover : united) {
      start_.push_back(cover.start);
      // Longer than half the clock only in a damaged file.
      dur.push_back(static_cast<std::int64_t>(
          std::min(between(cover.start, cover.end), static_cast<std::uint64_t>(kLastTime))));
      row_.push_back(cover.row);
      name_.push_back(columns.name[cover.row]);
    }
    lanes_[lane].end = static_cast<std::uint32_t>(start_.size());
  }

  before_.resize(start_.size() + 1);
  before_[0] = 0;
  for (std::size_t i = 0; i < start_.size(); ++i)
    before_[i + 1] = before_[i] + static_cast<std::uint64_t>(dur[i]);
  grow_tree();
}

void TimelineIndex::grow_tree() {
  std::size_t below = start_.size();
  while (below > kFanOut) {
    std::vector<std::uint32_t> level((below + kFanOut - 1) / kFanOut);
    for (std::size_t block = 0; block < level.size(); ++block) {
      const std::size_t to = std::min(below, (block + 1) * kFanOut);
      std::size_t best = 0;
      std::int64_t best_dur = -1;
      for (std::size_t i = block * kFanOut; i < to; ++i) {
        const std::size_t at = tree_.empty() ? i : tree_.back()[i];
        if (dur(at) > best_dur) {
          best_dur = dur(at);
          best = at;
        }
      }
      level[block] = static_cast<std::uint32_t>(best);
    }
    below = level.size();
    tree_.push_back(std::move(level));
  }
}

std::size_t TimelineIndex::longest(std::size_t from, std::size_t to) const {
  std::size_t best = from;
  std::int64_t best_dur = dur(from);
  std::size_t level = 0;
  const auto consider = [&](std::size_t lo, std::size_t hi) {
    for (std::size_t i = lo; i < hi; ++i) {
      const std::size_t at = level == 0 ? i : tree_[level - 1][i];
      const std::int64_t candidate = dur(at);
      if (candidate > best_dur) {
        best_dur = candidate;
        best = at;
      }
    }
  };
  while (from < to) {
    const std::size_t whole_from = (from + kFanOut - 1) / kFanOut;
    const std::size_t whole_to = to / kFanOut;
    if (level == tree_.size() || whole_from >= whole_to) {
      consider(from, to);
      break;
    }
    consider(from, whole_from * kFanOut);
    consider(whole_to * kFanOut, to);
    from = whole_from;
    to = whole_to;
    ++level;
  }
  return best;
}

void TimelineIndex::wide(std::size_t from, std::size_t to, std::int64_t at_least,
                         std::vector<std::uint32_t>& out) const {
  // Walks in order, leaping over every block whose longest span is too short.
  std::size_t i = from;
  while (i < to) {
    std::size_t level = 0;
    std::size_t block = kFanOut;
    while (level < tree_.size() && i % block == 0 && i + block <= to &&
           dur(tree_[level][i / block]) < at_least) {
      ++level;
      block *= kFanOut;
    }
    if (level > 0) {
      i += block / kFanOut;
      continue;
    }
    if (dur(i) >= at_least) out.push_back(static_cast<std::uint32_t>(i));
    ++i;
  }
}

const Lane& TimelineIndex::lane_at(std::int32_t lane) const {
  if (lane < 0 || static_cast<std::size_t>(lane) >= lanes_.size()) {
    throw std::invalid_argument("lane " + std::to_string(lane) + " of " + std::to_string(lanes_.size()));
  }
  return lanes_[static_cast<std::size_t>(lane)];
}

std::size_t TimelineIndex::first_starting_at(const Lane& lane, std::int64_t t) const {
  const auto from = start_.begin();
  return static_cast<std::size_t>(std::lower_bound(from + lane.begin, from + lane.end, t) - from);
}

std::pair<std::size_t, std::size_t> TimelineIndex::in_sight(const Lane& lane, std::int64_t t0,
                                                            std::int64_t t1) const {
  std::size_t from = first_starting_at(lane, t0);
  const std::size_t to = first_starting_at(lane, t1);
  if (from > lane.begin && end(from - 1) > t0) --from;
  return {from, std::max(from, to)};
}

std::int64_t TimelineIndex::busy_ns(std::int32_t lane) const {
  const Lane& of = lane_at(lane);
  return static_cast<std::int64_t>(before_[of.end] - before_[of.begin]);
}

std::size_t TimelineIndex::bytes() const {
  std::size_t sum = start_.capacity() * sizeof(std::int64_t) + before_.capacity() * sizeof(std::uint64_t) +
                    name_.capacity() * sizeof(std::int32_t) + row_.capacity() * sizeof(std::uint32_t);
  for (const auto& level : tree_) sum += level.capacity() * sizeof(std::uint32_t);
  return sum;
}

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

bool TimelineIndex::is_marked(const Marked& marked, std::size_t i) const {
  if (!marked.names.empty() && name_[i] >= 0 && static_cast<std::size_t>(name_[i]) < marked.names.size() &&
      marked.names[static_cast<std::size_t>(name_[i])] != 0) {
    return true;
  }
  return !marked.rows.empty() && row_[i] < marked.rows.size() && marked.rows[row_[i]] != 0;
}

View TimelineIndex::view(const ViewRequest& request) const {
  const std::vector<std::int64_t> edges = edges_of(request.t0, request.t1, request.width);
  const auto width = static_cast<std::size_t>(request.width);
  const bool marking = request.marked.any();
  View out;
  LocalNames local(names_, out.names);
  out.mode.reserve(request.lanes.size());
  out.span_begin.push_back(0);
  std::vector<std::uint32_t> wide_ones;
  std::vector<std::uint64_t> marked_ns(marking ? width : 0);
  std::vector<std::uint8_t> marked_any(marking ? width : 0);

  const auto give_span = [&](std::size_t i) {
    out.span_start.push_back(start_[i]);
    out.span_dur.push_back(dur(i));
    out.span_row.push_back(row_[i]);
    out.span_name.push_back(local(name_[i]));
    if (marking) out.span_marked.push_back(is_marked(request.marked, i) ? 1 : 0);
  };

  for (const std::int32_t wanted : request.lanes) {
    const Lane& lane = lane_at(wanted);
    const auto [from, to] = in_sight(lane, request.t0, request.t1);
    if (from == to) {
      out.mode.push_back(0);
    } else if (to - from <= request.exact_limit) {
      out.mode.push_back(1);
      for (std::size_t i = from; i < to; ++i) give_span(i);
    } else {
      out.mode.push_back(2);
      Walk walk(*this, lane, request.t0);
      for (std::size_t k = 0; k < width; ++k) {
        const Cell cell = walk.to(edges[k + 1]);
        out.column_busy.push_back(shade(cell.busy, cell.width, cell.count > 0));
        out.column_name.push_back(cell.count > 0 ? local(name_[cell.longest]) : 0);
      }
      if (marking) {
        std::fill(marked_ns.begin(), marked_ns.end(), std::uint64_t{0});
        std::fill(marked_any.begin(), marked_any.end(), std::uint8_t{0});
        std::size_t k = 0;
        for (std::size_t i = from; i < to; ++i) {
          if (!is_marked(request.marked, i)) continue;
          const std::int64_t stop = std::min(end(i), request.t1);
          std::int64_t at = std::max(start_[i], request.t0);
          while (k + 1 < width && edges[k + 1] <= at) ++k;
          marked_any[k] = 1;
          for (std::size_t c = k; at < stop; ++c) {
            const std::int64_t until = std::min(stop, edges[c + 1]);
            marked_ns[c] += between(at, until);
            marked_any[c] = 1;
            at = until;
          }
        }
        for (std::size_t c = 0; c < width; ++c) {
          out.column_marked.push_back(
              shade(marked_ns[c], between(edges[c], edges[c + 1]), marked_any[c] != 0));
        }
      }
      if (request.wide_ns > 0) {
        wide_ones.clear();
        wide(from, to, request.wide_ns, wide_ones);
        for (const std::uint32_t i : wide_ones) give_span(i);
      }
    }
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

Hit TimelineIndex::hit(std::int32_t lane, std::int64_t t, std::int64_t tolerance) const {
  const Lane& of = lane_at(lane);
  const std::size_t after = first_starting_at(of, t == kLastTime ? t : t + 1);
  Hit best;
  auto best_distance = static_cast<std::uint64_t>(std::max<std::int64_t>(tolerance, 0));
  const auto consider = [&](std::size_t i) {
    std::uint64_t distance = 0;
    if (start_[i] > t) {
      distance = static_cast<std::uint64_t>(start_[i]) - static_cast<std::uint64_t>(t);
    } else if (end(i) <= t && dur(i) > 0) {
      distance = static_cast<std::uint64_t>(t) - static_cast<std::uint64_t>(end(i)) + 1;
    } else if (dur(i) == 0) {
      distance = static_cast<std::uint64_t>(t) - static_cast<std::uint64_t>(start_[i]);
    }
    if (distance <= best_distance && (best.row < 0 || distance < best_distance)) {
      best = {static_cast<std::int64_t>(row_[i]), lane, start_[i], dur(i)};
      best_distance = distance;
    }
  };
  if (after > of.begin) consider(after - 1);
  if (after < of.end) consider(after);
  return best;
}

Hit TimelineIndex::neighbour(std::int32_t lane, std::int64_t start_ns, std::int64_t row, int step) const {
  const Lane& of = lane_at(lane);
  std::size_t at = first_starting_at(of, start_ns);
  while (at < of.end && start_[at] == start_ns && row_[at] != row) ++at;
  if (step < 0) {
    if (at == of.begin) return {};
    --at;
  } else {
    if (at < of.end && start_[at] == start_ns) ++at;
    if (at >= of.end) return {};
  }
  return {static_cast<std::int64_t>(row_[at]), lane, start_[at], dur(at)};
}

Hit TimelineIndex::locate(std::int32_t track, std::int64_t start_ns, std::int64_t row) const {
  if (track < 0 || static_cast<std::size_t>(track) + 1 >= lanes_of_track_.size()) return {};
  const auto from = lanes_of_track_[static_cast<std::size_t>(track)];
  const auto to = lanes_of_track_[static_cast<std::size_t>(track) + 1];
  for (std::uint32_t lane = from; lane < to; ++lane) {
    const Lane& of = lanes_[lane];
    if (of.kind != LaneKind::spans) continue;
    for (std::size_t i = first_starting_at(of, start_ns); i < of.end && start_[i] == start_ns; ++i) {
      if (row_[i] == row) return {row, static_cast<std::int32_t>(lane), start_[i], dur(i)};
    }
  }
  return {};
}

std::vector<std::int64_t> TimelineIndex::rows(std::int64_t t0, std::int64_t t1,
                                              std::span<const std::int32_t> lanes) const {
  std::vector<std::int64_t> out;
  for (const std::int32_t lane : lanes) {
    const Lane& of = lane_at(lane);
    const auto [from, to] = in_sight(of, t0, t1 == kLastTime ? t1 : t1 + 1);
    for (std::size_t i = from; i < to; ++i) out.push_back(row_[i]);
  }
  return out;
}

Totals TimelineIndex::totals(std::int64_t t0, std::int64_t t1, std::span<const std::int32_t> lanes) const {
  std::vector<std::int64_t> count(names_ + 1);
  std::vector<std::uint64_t> inside(names_ + 1);
  for (const std::int32_t lane : lanes) {
    const auto [from, to] = in_sight(lane_at(lane), t0, t1 == kLastTime ? t1 : t1 + 1);
    for (std::size_t i = from; i < to; ++i) {
      const auto name = static_cast<std::size_t>(name_[i] + 1);
      ++count[name];
      const std::int64_t first = std::max(start_[i], t0);
      const std::int64_t last = std::min(end(i), t1);
      if (last > first) inside[name] += between(first, last);
    }
  }
  Totals out;
  for (std::size_t name = 0; name < count.size(); ++name) {
    if (count[name] == 0) continue;
    out.name.push_back(static_cast<std::int32_t>(name) - 1);
    out.count.push_back(count[name]);
    out.inside_ns.push_back(static_cast<std::int64_t>(inside[name]));
  }
  return out;
}

Hit TimelineIndex::next_marked(const Marked& marked, std::span<const std::int32_t> lanes, std::int64_t t,
                               std::int32_t lane, bool forward) const {
  Hit best;
  std::ptrdiff_t here = forward ? -1 : static_cast<std::ptrdiff_t>(lanes.size());
  for (std::size_t o = 0; o < lanes.size(); ++o) {
    if (lanes[o] == lane) here = static_cast<std::ptrdiff_t>(o);
  }
  for (std::size_t o = 0; o < lanes.size(); ++o) {
    const Lane& of = lane_at(lanes[o]);
    const auto order = static_cast<std::ptrdiff_t>(o);
    if (forward) {
      // At the same start, lanes further down come later.
      std::size_t i = first_starting_at(of, t);
      if (order <= here) {
        while (i < of.end && start_[i] == t) ++i;
      }
      for (; i < of.end && (best.row < 0 || start_[i] < best.start_ns); ++i) {
        if (is_marked(marked, i)) {
          best = {static_cast<std::int64_t>(row_[i]), lanes[o], start_[i], dur(i)};
          break;
        }
      }
    } else {
      std::size_t i = first_starting_at(of, t);
      if (order < here) {
        while (i < of.end && start_[i] == t) ++i;
      }
      for (; i > of.begin && (best.row < 0 || start_[i - 1] >= best.start_ns); --i) {
        if (is_marked(marked, i - 1)) {
          best = {static_cast<std::int64_t>(row_[i - 1]), lanes[o], start_[i - 1], dur(i - 1)};
          break;
        }
      }
    }
  }
  return best;
}

std::vector<std::int64_t> TimelineIndex::count_marked(const Marked& marked) const {
  std::vector<std::int64_t> out;
  out.reserve(lanes_.size());
  for (const Lane& lane : lanes_) {
    std::int64_t count = 0;
    for (std::size_t i = lane.begin; i < lane.end; ++i) count += is_marked(marked, i) ? 1 : 0;
    out.push_back(count);
  }
  return out;
}

std::vector<std::int64_t> TimelineIndex::durations() const {
  std::vector<std::int64_t> out(start_.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = dur(i);
  return out;
}

}  // namespace torchtrt_viz
