#include "formats/kineto/pairs.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace torchtrt_viz::kineto {
namespace {

// Outermost asynchronous span of a group, and what lies inside it: rows [first, last) as they were appended.
struct Root {
  std::int64_t start;
  std::int64_t end;
  std::uint32_t process;
  std::uint32_t category;
  std::uint32_t name;
  std::size_t first;
  std::size_t last;
};

class Pairing {
 public:
  Pairing(Spans& spans, Instants& instants, Lanes& lanes, Notes& notes)
      : spans_(spans), instants_(instants), lanes_(lanes), notes_(notes) {}

  void take(const PairedEvent& event) {
    if (event.begins) {
      if (live_ == 0) group_first_ = spans_.size();
      by_name_[event.name].push_back(open_.size());
      open_.push_back(&event);
      ++live_;
      return;
    }
    const PairedEvent* const begin = take_begin_of(event);
    if (begin == nullptr) {
      notes_.add(Note::end_without_begin, event.at);
      return;
    }
    close(*begin, event);
    if (live_ == 0 && event.asynchronous) add_root(*begin, event);
  }

  void end_group() {
    const PairedEvent* const outermost = outermost_open();
    // Spans inside an outermost one that never ended are whole: each becomes a root of its own.
    if (outermost != nullptr && outermost->asynchronous) {
      for (std::size_t row = group_first_; row < spans_.size(); ++row) {
        const std::int64_t start = spans_.start[row];
        roots_.push_back({start, start + spans_.dur[row], outermost->process, outermost->category,
                          spans_.name[row], row, row + 1});
      }
    }
    leave_unfinished();
  }

  void place_roots() {
    std::sort(roots_.begin(), roots_.end(), [](const Root& a, const Root& b) {
      return std::tie(a.process, a.category, a.start, a.first) <
             std::tie(b.process, b.category, b.start, b.first);
    });
    using Free = std::pair<std::int64_t, std::int32_t>;  // (end of the last span on it, lane)
    std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
    const Root* before = nullptr;
    for (const Root& root : roots_) {
      if (before == nullptr || before->process != root.process || before->category != root.category)
        free = {};
      before = &root;
      std::int32_t lane = 0;
      if (!free.empty() && free.top().first <= root.start) {
        lane = free.top().second;
        free.pop();
      } else {
        Lane made;
        made.type = LaneType::async;
        made.process = root.process;
        made.label = root.name;
        lane = lanes_.add(made);
      }
      free.emplace(root.end, lane);
      for (std::size_t row = root.first; row < root.last; ++row) spans_.lane[row] = lane;
    }
  }

  std::vector<EndOffset> ends;

 private:
  // The begin that an end belongs to, which is then no longer open; nullptr when there is none.
  const PairedEvent* take_begin_of(const PairedEvent& end) {
    drop_closed();
    if (open_.empty()) return nullptr;
    std::size_t found = open_.size() - 1;
    if (end.name != Interner::kNone && end.name != open_.back()->name) {
      const auto named = by_name_.find(end.name);
      if (named == by_name_.end() || named->second.empty()) return nullptr;
      found = named->second.back();
    }
    const PairedEvent* const begin = open_[found];
    by_name_[begin->name].pop_back();
    open_[found] = nullptr;
    --live_;
    drop_closed();
    return begin;
  }

  // Begins that were closed out of order leave a gap, which goes when everything inside it is closed too.
  void drop_closed() {
    while (!open_.empty() && open_.back() == nullptr) open_.pop_back();
  }

  [[nodiscard]] const PairedEvent* outermost_open() const {
    for (const PairedEvent* const begin : open_) {
      if (begin != nullptr) return begin;
    }
    return nullptr;
  }

  void leave_unfinished() {
    for (std::size_t i = open_.size(); i-- > 0;) {
      if (open_[i] == nullptr) continue;
      const PairedEvent& begin = *open_[i];
      notes_.add(Note::begin_without_end, begin.at);
      const LaneType type = begin.domain != 0 ? LaneType::stream : LaneType::thread;
      instants_.name.push(begin.name);
      instants_.kind.push(begin.kind);
      instants_.domain.push(begin.domain);
      instants_.state.push(static_cast<std::uint8_t>(InstantState::unfinished));
      instants_.lane.push(lanes_.get(begin.process, begin.thread, type));
      instants_.ts.push(begin.ts);
      instants_.at.push(static_cast<std::int64_t>(begin.at));
    }
    open_.clear();
    by_name_.clear();
    live_ = 0;
  }

  void close(const PairedEvent& begin, const PairedEvent& end) {
    std::int64_t dur = 0;
    // Events are in the order of time, so only the ends of the clock can overflow.
    if (__builtin_sub_overflow(end.ts, begin.ts, &dur)) dur = INT64_MAX - std::max<std::int64_t>(begin.ts, 0);
    ends.push_back({static_cast<std::int64_t>(spans_.size()), static_cast<std::int64_t>(end.at)});
    const LaneType type = begin.domain != 0 ? LaneType::stream : LaneType::thread;
    spans_.name.push(begin.name);
    spans_.kind.push(begin.kind);
    spans_.domain.push(begin.domain);
    spans_.lane.push(begin.asynchronous ? -1 : lanes_.get(begin.process, begin.thread, type));
    spans_.start.push(begin.ts);
    spans_.dur.push(dur);
    spans_.correlation.push(begin.correlation >= 0 ? begin.correlation : end.correlation);
    spans_.external_id.push(begin.external_id >= 0 ? begin.external_id : end.external_id);
    spans_.at.push(static_cast<std::int64_t>(begin.at));
  }

  void add_root(const PairedEvent& begin, const PairedEvent& end) {
    roots_.push_back(
        {begin.ts, end.ts, begin.process, begin.category, begin.name, group_first_, spans_.size()});
    group_first_ = spans_.size();
  }

  Spans& spans_;
  Instants& instants_;
  Lanes& lanes_;
  Notes& notes_;
  std::vector<const PairedEvent*> open_;  // of the current group, outermost first; nullptr: closed meanwhile
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> by_name_;  // places in `open_`, innermost last
  std::size_t live_ = 0;                                                 // begins in `open_`
  std::size_t group_first_ = 0;  // row of the first span inside the outermost open one
  std::vector<Root> roots_;
};

template <typename T>
void permute(Column<T>& column, const std::vector<std::uint32_t>& old_row_of) {
  Column<T> out;
  out.resize(column.size());
  for (std::size_t row = 0; row < old_row_of.size(); ++row) out[row] = column[old_row_of[row]];
  column = std::move(out);
}

}  // namespace

std::vector<EndOffset> pair(std::vector<PairedEvent>& events, Spans& spans, Instants& instants, Lanes& lanes,
                            Notes& notes) {
  std::stable_sort(events.begin(), events.end(), [](const PairedEvent& a, const PairedEvent& b) {
    return std::tie(a.asynchronous, a.group, a.ts) < std::tie(b.asynchronous, b.group, b.ts);
  });
  Pairing pairing(spans, instants, lanes, notes);
  const PairedEvent* before = nullptr;
  for (const PairedEvent& event : events) {
    if (before != nullptr && (before->group != event.group || before->asynchronous != event.asynchronous)) {
      pairing.end_group();
    }
    pairing.take(event);
    before = &event;
  }
  pairing.end_group();
  pairing.place_roots();
  return std::move(pairing.ends);
}

std::vector<std::uint32_t> restore_order(Spans& spans, std::vector<EndOffset>& ends) {
  const auto at = std::as_const(spans.at).view();
  if (std::is_sorted(at.begin(), at.end())) return {};
  std::vector<std::uint32_t> old_row_of(spans.size());
  std::iota(old_row_of.begin(), old_row_of.end(), 0U);
  std::sort(old_row_of.begin(), old_row_of.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::tie(at[a], a) < std::tie(at[b], b); });
  std::vector<std::uint32_t> new_row_of(old_row_of.size());
  for (std::uint32_t row = 0; row < old_row_of.size(); ++row) new_row_of[old_row_of[row]] = row;
  for (EndOffset& end : ends) end.row = new_row_of[static_cast<std::size_t>(end.row)];
  permute(spans.name, old_row_of);
  permute(spans.kind, old_row_of);
  permute(spans.domain, old_row_of);
  permute(spans.lane, old_row_of);
  permute(spans.start, old_row_of);
  permute(spans.dur, old_row_of);
  permute(spans.correlation, old_row_of);
  permute(spans.external_id, old_row_of);
  permute(spans.at, old_row_of);
  return old_row_of;
}

}  // namespace torchtrt_viz::kineto
