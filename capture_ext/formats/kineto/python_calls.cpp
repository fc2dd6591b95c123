#include "formats/kineto/python_calls.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "formats/kineto/key_index.hpp"

namespace torchtrt_viz::kineto {
namespace {

constexpr std::uint32_t kNoCaller = 0xFFFFFFFF;

Key key_of(std::uint32_t process, std::int64_t id) { return {process, static_cast<std::uint64_t>(id)}; }

std::int64_t end_of(std::int64_t start, std::int64_t dur) {
  std::int64_t end = 0;
  return __builtin_add_overflow(start, dur, &end) ? std::numeric_limits<std::int64_t>::max() : end;
}

// Index in `calls` of each call's caller on the same lane; kNoCaller where the file names none that it holds.
std::vector<std::uint32_t> callers_of(const Spans& spans, const std::vector<PythonCall>& calls) {
  KeyIndex index;
  std::vector<std::uint32_t> call_of;  // by number in `index`; of an id that occurs twice the first counts
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    if (index.insert(key_of(calls[i].process, calls[i].id)) == call_of.size()) call_of.push_back(i);
  }
  std::vector<std::uint32_t> out(calls.size(), kNoCaller);
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    if (calls[i].parent < 0) continue;
    const std::uint32_t found = index.find(key_of(calls[i].process, calls[i].parent));
    if (found == KeyIndex::kNone) continue;
    const std::uint32_t caller = call_of[found];
    const auto row = static_cast<std::size_t>(calls[i].row);
    const auto caller_row = static_cast<std::size_t>(calls[caller].row);
    const bool holds =
        spans.lane[row] == spans.lane[caller_row] && spans.start[caller_row] <= spans.start[row];
    if (caller != i && holds) out[i] = caller;
  }
  return out;
}

// Depth of each row by its parents, each of which is walked once.
void set_depths(Nesting& nesting) {
  constexpr std::int32_t kUnknown = -1;
  std::fill(nesting.depth.begin(), nesting.depth.end(), kUnknown);
  std::vector<std::size_t> path;
  for (std::size_t row = 0; row < nesting.parent.size(); ++row) {
    for (std::size_t at = row; nesting.depth[at] == kUnknown;
         at = static_cast<std::size_t>(nesting.parent[at])) {
      path.push_back(at);
      if (nesting.parent[at] < 0) break;
    }
    for (; !path.empty(); path.pop_back()) {
      const std::int64_t parent = nesting.parent[path.back()];
      nesting.depth[path.back()] = parent < 0 ? 0 : nesting.depth[static_cast<std::size_t>(parent)] + 1;
    }
  }
}

}  // namespace

CallEnds proven_ends(const Spans& spans, const std::vector<PythonCall>& calls) {
  CallEnds out;
  if (calls.empty()) return out;
  const auto start = [&](std::uint32_t call) {
    return spans.start[static_cast<std::size_t>(calls[call].row)];
  };
  const auto end = [&](std::uint32_t call) {
    const auto row = static_cast<std::size_t>(calls[call].row);
    return end_of(spans.start[row], spans.dur[row]);
  };
  // The tracer gives all calls that are still open when the recording stops that moment for an end.
  std::unordered_map<std::uint32_t, std::int64_t> stop;
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    std::int64_t& latest_end = stop.try_emplace(calls[i].process, end(i)).first->second;
    latest_end = std::max(latest_end, end(i));
  }
  bool any_open = false;
  for (std::uint32_t i = 0; i < calls.size() && !any_open; ++i) {
    any_open = calls[i].parent >= 0 && end(i) == stop.at(calls[i].process);
  }
  if (!any_open) return out;
  const std::vector<std::uint32_t> caller = callers_of(spans, calls);
  // Callers before their callees, the callees of one caller in the order of time.
  std::vector<std::uint32_t> order(calls.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(start(a), calls[a].id, a) < std::tuple(start(b), calls[b].id, b);
  });
  // The next call of the same caller, which begins only when this one has returned.
  std::vector<std::uint32_t> next(calls.size(), kNoCaller);
  std::vector<std::uint32_t> latest(calls.size(), kNoCaller);
  for (const std::uint32_t call : order) {
    if (caller[call] == kNoCaller) continue;
    std::uint32_t& before = latest[caller[call]];
    if (before != kNoCaller) next[before] = call;
    before = call;
  }
  std::vector<std::int64_t> proven(calls.size());
  for (std::uint32_t i = 0; i < calls.size(); ++i) proven[i] = end(i);
  for (const std::uint32_t call : order) {
    const std::int64_t own = end(call);
    if (caller[call] != kNoCaller) proven[call] = std::min(proven[call], proven[caller[call]]);
    if (own != stop.at(calls[call].process)) {
      proven[call] = own;
      continue;
    }
    bool unclosed = proven[call] < own;
    if (const std::uint32_t after = next[call]; after != kNoCaller && start(after) < proven[call]) {
      // Times are cut to the file's precision, so that neighbours may touch; one inside the other is proof.
      if (unclosed || (start(after) > start(call) && end(after) <= own)) {
        unclosed = true;
        proven[call] = start(after);
      }
    }
    if (!unclosed) {
      proven[call] = own;
      continue;
    }
    const auto row = static_cast<std::size_t>(calls[call].row);
    if (out.dur.empty()) out.dur.assign(spans.dur.view().begin(), spans.dur.view().end());
    out.dur[row] = std::max<std::int64_t>(proven[call] - spans.start[row], 0);
    out.unclosed.push_back(calls[call].row);
  }
  std::sort(out.unclosed.begin(), out.unclosed.end());
  return out;
}

void apply_stated_callers(const Spans& spans, const std::vector<PythonCall>& calls, const CallEnds& ends,
                          Nesting& nesting) {
  if (ends.unclosed.empty()) return;  // without them nesting by time and statement agree
  const std::vector<std::uint32_t> caller = callers_of(spans, calls);
  std::vector<bool> is_call(spans.size(), false);
  for (const PythonCall& call : calls) is_call[static_cast<std::size_t>(call.row)] = true;
  bool changed = false;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (caller[i] == kNoCaller) continue;
    std::int64_t& parent = nesting.parent[static_cast<std::size_t>(calls[i].row)];
    const std::int64_t stated = calls[caller[i]].row;
    // Strictly later than its caller, so that statements of a damaged file cannot close a circle.
    if (spans.start[static_cast<std::size_t>(stated)] ==
        spans.start[static_cast<std::size_t>(calls[i].row)]) {
      continue;
    }
    if (parent == stated || (parent >= 0 && !is_call[static_cast<std::size_t>(parent)])) continue;
    parent = stated;
    changed = true;
  }
  if (!changed) return;
  set_depths(nesting);
  // The children of one parent in the order of time: what they cover of it.
  std::vector<std::uint32_t> order(spans.size());
  for (std::uint32_t row = 0; row < order.size(); ++row) order[row] = row;
  const auto& dur = ends.dur;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(spans.start[a], a) < std::tuple(spans.start[b], b);
  });
  std::vector<std::int64_t> covered_until(spans.size(), std::numeric_limits<std::int64_t>::min());
  for (std::size_t row = 0; row < spans.size(); ++row) nesting.self_ns[row] = dur[row];
  for (const std::uint32_t row : order) {
    const std::int64_t parent_row = nesting.parent[row];
    if (parent_row < 0) continue;
    const auto parent = static_cast<std::size_t>(parent_row);
    const std::int64_t parent_end = end_of(spans.start[parent], dur[parent]);
    const std::int64_t from = std::max({spans.start[row], spans.start[parent], covered_until[parent]});
    const std::int64_t to = std::min(end_of(spans.start[row], dur[row]), parent_end);
    if (to > from) {
      nesting.self_ns[parent] -= to - from;
      covered_until[parent] = to;
    }
  }
}

}  // namespace torchtrt_viz::kineto
