#include "formats/perfetto/slices.hpp"

#include <algorithm>
#include <numeric>

namespace torchtrt_viz::perfetto {
namespace {

// An end that names a slice is looked for so deep; real nesting is far from it.
constexpr std::size_t kDeepestEnd = 1024;

// What the marks become, before unfinished slices are taken out.
struct Row {
  std::size_t begin;      // the mark that began it
  std::int64_t dur = -1;  // -1 still open
  std::int32_t end_links = kNone;
  std::int32_t end_arguments = kNone;
  bool instant = false;
};

class Builder {
 public:
  Builder(const Marks& marks, std::size_t tracks, RowOfMark& row_of_mark)
      : marks_(marks), stacks_(tracks), row_of_mark_(row_of_mark) {}

  Slices run() {
    row_of_mark_.assign(marks_.marks.size(), -1);
    for (const std::size_t index : in_time_order()) take(index);
    return finish();
  }

 private:
  // Sequences are written one by one, so that a file need not be in order of time; events of the same time
  // keep the file's order.
  std::vector<std::size_t> in_time_order() const {
    std::vector<std::size_t> order(marks_.marks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto before = [&](std::size_t a, std::size_t b) { return marks_.marks[a].ts < marks_.marks[b].ts; };
    if (!std::is_sorted(order.begin(), order.end(), before))
      std::stable_sort(order.begin(), order.end(), before);
    return order;
  }

  void take(std::size_t index) {
    const Mark& mark = marks_.marks[index];
    std::vector<std::size_t>& stack = stacks_[static_cast<std::size_t>(mark.track)];
    std::int64_t row = -1;
    switch (mark.type) {
      case Mark::Type::kBegin:
        row = add({index, -1, kNone, kNone, false});
        stack.push_back(static_cast<std::size_t>(row));
        break;
      case Mark::Type::kComplete:
        row = add({index, mark.dur, kNone, kNone, false});
        break;
      case Mark::Type::kInstant:
        add({index, 0, kNone, kNone, true});
        // flows of an instant belong to the slice around it: instants are no rows of the spans
        if (!stack.empty()) row = static_cast<std::int64_t>(stack.back());
        break;
      case Mark::Type::kEnd:
        row = close(stack, mark);
        if (row < 0) {
          ++out_.ends_without_begin;
          out_.bytes_of_lost_ends += mark.packet_bytes;
          return;
        }
        break;
    }
    row_of_mark_[index] = row;
    use_flows(mark, row);
  }

  std::int64_t add(Row row) {
    rows_.push_back(row);
    return static_cast<std::int64_t>(rows_.size() - 1);
  }

  // An end closes the innermost open slice; one that has a name or a category the innermost open one of them.
  std::int64_t close(std::vector<std::size_t>& stack, const Mark& mark) {
    const std::size_t lowest = stack.size() > kDeepestEnd ? stack.size() - kDeepestEnd : 0;
    for (std::size_t i = stack.size(); i > lowest; --i) {
      Row& row = rows_[stack[i - 1]];
      const Mark& begin = marks_.marks[row.begin];
      if (row.dur >= 0) continue;
      if (mark.category != kNone && mark.category != begin.category) continue;
      if (mark.name != kNone && begin.name != kNone && mark.name != begin.name) continue;
      row.dur = mark.ts - begin.ts;
      row.end_arguments = mark.arguments;
      row.end_links = mark.links;
      const auto closed = static_cast<std::int64_t>(stack[i - 1]);
      while (!stack.empty() && rows_[stack.back()].dur >= 0) stack.pop_back();
      return closed;
    }
    return -1;
  }

  // The first use of an id starts a flow, every later one is a step of it; a terminating use ends it.
  void use_flows(const Mark& mark, std::int64_t row) {
    for (std::uint32_t i = 0; i < mark.flow_count; ++i) {
      const FlowUse& use = marks_.flows[static_cast<std::size_t>(mark.first_flow) + i];
      const auto active = active_.find(use.id);
      if (active != active_.end()) {
        out_.flows.source.push_back(active->second);
        out_.flows.target.push_back(row);
        out_.flows.id.push_back(static_cast<std::int64_t>(use.id));
        if (use.terminating) {
          active_.erase(active);
        } else {
          active->second = row;
        }
      } else if (!use.terminating) {
        active_.emplace(use.id, row);
      }
    }
  }

  Slices finish() {
    std::vector<std::size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto before = [&](std::size_t a, std::size_t b) { return rows_[a].begin < rows_[b].begin; };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    std::vector<std::int64_t> new_row(rows_.size(), -1);
    for (const std::size_t old : order) {
      const Row& row = rows_[old];
      if (row.instant || row.dur < 0) {
        add_instant(row);
      } else {
        new_row[old] = static_cast<std::int64_t>(out_.spans.name.size());
        add_span(row);
      }
    }
    for (auto* ends : {&out_.flows.source, &out_.flows.target, &row_of_mark_}) {
      for (std::int64_t& end : *ends) end = end < 0 ? -1 : new_row[static_cast<std::size_t>(end)];
    }
    return std::move(out_);
  }

  void add_instant(const Row& row) {
    const Mark& mark = marks_.marks[row.begin];
    Instants& out = out_.instants;
    out.name.push_back(mark.name);
    out.category.push_back(mark.category);
    out.track.push_back(mark.track);
    out.ts.push_back(mark.ts);
    out.unfinished.push_back(row.instant ? 0 : 1);
    out.arguments.push_back(mark.arguments);
    out_.unfinished += row.instant ? 0 : 1;
  }

  void add_span(const Row& row) {
    const Mark& mark = marks_.marks[row.begin];
    Spans& out = out_.spans;
    out.name.push_back(mark.name);
    out.category.push_back(mark.category);
    out.track.push_back(mark.track);
    out.start.push_back(mark.ts);
    out.dur.push_back(row.dur);
    Links links = mark.links == kNone ? Links{} : marks_.links[static_cast<std::size_t>(mark.links)];
    if (row.end_links != kNone) {
      const Links& end = marks_.links[static_cast<std::size_t>(row.end_links)];
      if (end.correlation != -1) links.correlation = end.correlation;
      if (end.external_id != -1) links.external_id = end.external_id;
      if (end.corr_id != -1) links.corr_id = end.corr_id;
      if (end.iteration != -1) links.iteration = end.iteration;
      if (end.run != kNone) links.run = end.run;
    }
    out.correlation.push_back(links.correlation);
    out.external_id.push_back(links.external_id);
    out.corr_id.push_back(links.corr_id);
    out.iteration.push_back(links.iteration);
    out.run.push_back(links.run);
    out.begin_arguments.push_back(mark.arguments);
    out.end_arguments.push_back(row.end_arguments);
  }

  const Marks& marks_;
  std::vector<std::vector<std::size_t>> stacks_;
  RowOfMark& row_of_mark_;
  std::vector<Row> rows_;
  IdMap<std::int64_t> active_;
  Slices out_;
};

}  // namespace

Slices build_slices(const Marks& marks, std::size_t tracks, RowOfMark& row_of_mark) {
  return Builder(marks, tracks, row_of_mark).run();
}

}  // namespace torchtrt_viz::perfetto
