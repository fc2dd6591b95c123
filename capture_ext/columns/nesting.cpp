#include "columns/nesting.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace torchtrt_viz {
namespace {

// An end beyond the range of the clock can only come from a damaged file; saturate rather than wrap.
std::int64_t end_of(std::int64_t start, std::int64_t dur) {
  std::int64_t end = 0;
  return __builtin_add_overflow(start, dur, &end) ? std::numeric_limits<std::int64_t>::max() : end;
}

struct OpenSpan {
  std::int64_t row;
  std::int64_t end;
  std::int64_t covered_until;  // children cover the time up to here
};

struct SpanColumns {
  std::span<const std::int32_t> track;
  std::span<const std::int64_t> start;
  std::span<const std::int64_t> dur;
};

// Outer spans before inner ones, of equal ones the earlier in the file.
template <typename Index>
bool comes_before(const SpanColumns& in, Index a, Index b) {
  if (in.start[a] != in.start[b]) return in.start[a] < in.start[b];
  if (in.dur[a] != in.dur[b]) return in.dur[a] > in.dur[b];
  return a < b;
}

// Merges the ascending runs that are there. Producers write the events of a thread as a few sorted lists one
// after another (operators, then Python frames, then launches), so that little is left to do.
template <typename Index>
void sort_by_runs(const SpanColumns& in, std::span<Index> rows, std::vector<Index>& space) {
  const auto less = [&in](Index a, Index b) { return comes_before(in, a, b); };
  std::vector<std::size_t> ends;  // of the runs
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (less(rows[i], rows[i - 1])) ends.push_back(i);
  }
  if (ends.empty()) return;
  ends.push_back(rows.size());
  space.resize(rows.size());
  std::span<Index> from = rows;
  std::span<Index> to = space;
  while (ends.size() > 1) {
    std::size_t begin = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      const std::size_t middle = ends[i];
      const std::size_t end = i + 1 < ends.size() ? ends[i + 1] : middle;
      const auto at = [](std::span<Index> of, std::size_t index) {
        return of.begin() + static_cast<std::ptrdiff_t>(index);
      };
      std::merge(at(from, begin), at(from, middle), at(from, middle), at(from, end), at(to, begin), less);
      ends[kept++] = end;
      begin = end;
    }
    ends.resize(kept);
    std::swap(from, to);
  }
  if (from.data() != rows.data()) std::copy(from.begin(), from.end(), rows.begin());
}

// Rows by track, in each track outer spans before inner ones.
template <typename Index>
std::vector<Index> sorted_rows(const SpanColumns& in) {
  const std::size_t n = in.track.size();
  std::vector<Index> rows(n);
  const auto [low, high] = std::minmax_element(in.track.begin(), in.track.end());
  const std::int64_t first = *low;
  const auto tracks = static_cast<std::size_t>(*high - first) + 1;
  if (tracks > 4 * n + 1024) {  // numbers far apart: no room for a counter each
    std::iota(rows.begin(), rows.end(), Index{0});
    std::sort(rows.begin(), rows.end(), [&in](Index a, Index b) {
      return in.track[a] != in.track[b] ? in.track[a] < in.track[b] : comes_before(in, a, b);
    });
    return rows;
  }
  const auto number = [&](std::size_t row) { return static_cast<std::size_t>(in.track[row] - first); };
  std::vector<std::size_t> begin_of(tracks + 1, 0);
  for (std::size_t row = 0; row < n; ++row) ++begin_of[number(row) + 1];
  std::partial_sum(begin_of.begin(), begin_of.end(), begin_of.begin());
  std::vector<std::size_t> next(begin_of.begin(), begin_of.end() - 1);
  for (std::size_t row = 0; row < n; ++row) rows[next[number(row)]++] = static_cast<Index>(row);
  std::vector<Index> space;
  for (std::size_t track = 0; track < tracks; ++track) {
    sort_by_runs(in, std::span(rows).subspan(begin_of[track], begin_of[track + 1] - begin_of[track]), space);
  }
  return rows;
}

template <typename Index>
void sweep(const SpanColumns& in, const std::vector<Index>& rows, Nesting& out) {
  // Spans that may still enclose a later one, outermost first. A span whose end comes before that of a
  // later-started one can enclose nothing that the later one does not enclose more closely, so it is
  // dropped: the stack's ends fall from bottom to top, and the top is always the innermost candidate.
  std::vector<OpenSpan> stack;
  std::int32_t current = 0;
  for (const Index row : rows) {
    if (stack.empty() || in.track[row] != current) {
      stack.clear();
      current = in.track[row];
    }
    const std::int64_t start = in.start[row];
    const std::int64_t end = end_of(start, in.dur[row]);
    bool cut = false;
    while (!stack.empty() && (stack.back().end <= start || stack.back().end < end)) {
      cut |= stack.back().end > start;
      stack.pop_back();
    }
    out.overlaps += cut ? 1 : 0;
    if (!stack.empty()) {
      OpenSpan& parent = stack.back();
      const auto parent_row = static_cast<std::size_t>(parent.row);
      out.parent[row] = parent.row;
      out.depth[row] = out.depth[parent_row] + 1;
      const std::int64_t from = std::max(start, parent.covered_until);
      if (end > from) {
        out.self_ns[parent_row] -= end - from;
        parent.covered_until = end;
      }
    }
    stack.push_back({static_cast<std::int64_t>(row), end, start});
  }
}

}  // namespace

Nesting nest(std::span<const std::int32_t> track, std::span<const std::int64_t> start_ns,
             std::span<const std::int64_t> dur_ns) {
  const std::size_t n = track.size();
  Nesting out;
  out.parent.assign(n, -1);
  out.depth.assign(n, 0);
  out.self_ns.assign(dur_ns.begin(), dur_ns.end());
  if (n == 0) return out;
  const SpanColumns in{track, start_ns, dur_ns};
  if (n <= std::numeric_limits<std::uint32_t>::max()) {
    sweep(in, sorted_rows<std::uint32_t>(in), out);
  } else {
    sweep(in, sorted_rows<std::uint64_t>(in), out);
  }
  return out;
}

}  // namespace torchtrt_viz
