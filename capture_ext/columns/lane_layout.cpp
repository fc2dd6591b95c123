#include "columns/lane_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

namespace torchtrt_viz {
namespace {

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

}  // namespace

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

}  // namespace torchtrt_viz
