#include "columns/timeline_index.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "columns/lane_layout.hpp"
#include "columns/marks.hpp"
#include "core/error.hpp"

namespace torchtrt_viz {
namespace {

constexpr std::size_t kFanOut = 32;

}  // namespace

TimelineIndex::TimelineIndex(const TimelineColumns& columns) {
  const std::size_t n = columns.track.size();
  if (columns.start_ns.size() != n || columns.dur_ns.size() != n || columns.name.size() != n) {
    throw Error(Code::invalid_argument, "track, start_ns, dur_ns and name differ in length");
  }
  if (n >= std::numeric_limits<std::uint32_t>::max() / 2) {
    throw Error(Code::not_supported, "the timeline index holds up to 2^31 spans");
  }
  const std::size_t tracks = columns.flat.size();
  std::vector<std::uint32_t> of_track(tracks + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t track = columns.track[i];
    if (track < 0 || static_cast<std::size_t>(track) >= tracks) {
      throw Error(Code::invalid_argument,
                  "track " + std::to_string(track) + " outside 0.." + std::to_string(tracks));
    }
    if (columns.dur_ns[i] < 0) throw Error(Code::invalid_argument, "a duration is negative");
    if (columns.name[i] < -1) throw Error(Code::invalid_argument, "a name code is below -1");
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

  std::vector<std::int64_t> counts(names_ + 1);  // shifted by one: spans without a name come first
  for (const std::int32_t name : name_) ++counts[static_cast<std::size_t>(std::int64_t{name} + 1)];
  name_counts_.assign(counts.begin() + 1, counts.end());

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
    throw Error(Code::invalid_argument,
                "lane " + std::to_string(lane) + " of " + std::to_string(lanes_.size()));
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
      const auto name = static_cast<std::size_t>(std::int64_t{name_[i]} + 1);
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

// Positions of a lane around a spot: [begin, before) come before it, [after, end) behind it.
struct TimelineIndex::Bounds {
  std::size_t before;
  std::size_t after;
};

// `side` is the lane's place among the lanes of the search less that of the spot's lane: at the same start,
// lanes further down come later.
TimelineIndex::Bounds TimelineIndex::around(const Lane& lane, std::ptrdiff_t side, const Spot& spot) const {
  const std::size_t first = first_starting_at(lane, spot.t);
  if (side > 0) return {first, first};
  std::size_t last = first;
  std::size_t own = lane.end;
  for (; last < lane.end && start_[last] == spot.t; ++last) {
    if (side == 0 && spot.row >= 0 && row_[last] == static_cast<std::uint64_t>(spot.row)) own = last;
  }
  if (side < 0) return {last, last};
  return own == lane.end ? Bounds{first, last} : Bounds{own, own + 1};
}

namespace {

// The place of a lane among others, `missing` when it is none of them.
std::ptrdiff_t order_of(std::span<const std::int32_t> lanes, std::int32_t lane, std::ptrdiff_t missing) {
  const auto found = std::find(lanes.begin(), lanes.end(), lane);
  return found == lanes.end() ? missing : found - lanes.begin();
}

}  // namespace

Hit TimelineIndex::next_marked(const Marked& marked, std::span<const std::int32_t> lanes, const Spot& from,
                               bool forward) const {
  const Marks marks(marked, names_);
  Hit best;
  const std::ptrdiff_t here =
      order_of(lanes, from.lane, forward ? -1 : static_cast<std::ptrdiff_t>(lanes.size()));
  for (std::size_t o = 0; o < lanes.size(); ++o) {
    const Lane& of = lane_at(lanes[o]);
    const Bounds bounds = around(of, static_cast<std::ptrdiff_t>(o) - here, from);
    if (forward) {
      // Nothing that starts after the best one yet can be better.
      const std::size_t to = best.row < 0 ? of.end : first_starting_at(of, best.start_ns);
      const std::size_t i = marks.first(name_, row_, bounds.after, std::max(bounds.after, to));
      if (i < to) best = {static_cast<std::int64_t>(row_[i]), lanes[o], start_[i], dur(i)};
    } else {
      for (std::size_t i = bounds.before; i > of.begin && (best.row < 0 || start_[i - 1] >= best.start_ns);
           --i) {
        if (marks.of(name_[i - 1], row_[i - 1])) {
          best = {static_cast<std::int64_t>(row_[i - 1]), lanes[o], start_[i - 1], dur(i - 1)};
          break;
        }
      }
    }
  }
  return best;
}

std::int64_t TimelineIndex::marked_until(const Marked& marked, std::span<const std::int32_t> lanes,
                                         const Spot& until) const {
  const Marks marks(marked, names_);
  const std::ptrdiff_t here = order_of(lanes, until.lane, -1);
  std::int64_t count = 0;
  marks.with_test([&](auto is_marked) {
    for (std::size_t o = 0; o < lanes.size(); ++o) {
      const Lane& of = lane_at(lanes[o]);
      const std::size_t to = around(of, static_cast<std::ptrdiff_t>(o) - here, until).after;
      for (std::size_t i = of.begin; i < to; ++i) count += is_marked(name_[i], row_[i]) ? 1 : 0;
    }
  });
  return count;
}

std::vector<std::int64_t> TimelineIndex::count_marked(const Marked& marked) const {
  const Marks marks(marked, names_);
  std::vector<std::int64_t> out;
  out.reserve(lanes_.size());
  marks.with_test([&](auto is_marked) {
    for (const Lane& lane : lanes_) {
      std::int64_t count = 0;
      for (std::size_t i = lane.begin; i < lane.end; ++i) count += is_marked(name_[i], row_[i]) ? 1 : 0;
      out.push_back(count);
    }
  });
  return out;
}

std::vector<std::int64_t> TimelineIndex::durations() const {
  std::vector<std::int64_t> out(start_.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = dur(i);
  return out;
}

}  // namespace torchtrt_viz
