#include "formats/kineto/collector.hpp"

#include <algorithm>

#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) {
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

constexpr std::uint32_t kNoGroup = 0xFFFFFFFF;
constexpr std::int64_t kDay = 86'400'000'000'000;  // ns

bool in_clock(const Event& event) {
  std::int64_t end = 0;
  return !__builtin_add_overflow(event.ts, event.dur, &end);
}

}  // namespace

void Collector::add(const Event& event, const Series& series) {
  ++events;
  if (event.category != Interner::kNone) {
    while (category_meanings_.size() <= event.category) {
      const auto code = static_cast<std::uint32_t>(category_meanings_.size());
      category_meanings_.push_back(vocabulary_.of_category(strings_.categories.text(code)));
      category_counts.push_back(0);
    }
    ++category_counts[event.category];
  }
  if (event.phase == 'M') {
    ++counts.metadata;
    metadata(event);
    return;
  }
  if (event.ts_state != NumberState::valid) {
    ++counts.left_out;
    notes_.add(event.phase == '\0' ? Note::unknown_phase : Note::missing_time, event.at);
    return;
  }
  switch (event.phase) {
    case 'X':
      ++counts.complete;
      span_or_instant(event);
      break;
    case 's':
    case 't':
    case 'f':
      ++counts.flows;
      flow(event);
      break;
    case 'i':
    case 'I':  // as older producers write it
    case 'R':  // a mark
    case 'P':  // a sample
      ++counts.instants;
      instant(event, InstantState::instant);
      if (event.has_memory_totals) allocator_totals(event);
      break;
    case 'C':
      ++counts.counters;
      counter(event, series);
      break;
    case 'B':
    case 'E':
      paired(event, false);
      break;
    case 'b':
    case 'e':
    case 'S':  // the same, as older producers write it
    case 'F':
      paired(event, true);
      break;
    case 'n':
    case 'T':
    case 'p':
      ++counts.instants;
      instant(event, InstantState::instant);
      break;
    default:
      ++counts.left_out;
      notes_.add(Note::unknown_phase, event.at);
  }
}

Collector::Resolved Collector::resolve(const Event& event) {
  const Meaning meaning =
      event.category == Interner::kNone ? vocabulary_.other : category_meanings_[event.category];
  std::uint8_t kind = meaning.kind;
  if (event.name != Interner::kNone) {
    while (name_rules_.size() <= event.name) {
      name_rules_.push_back(
          vocabulary_.of_name(strings_.names.text(static_cast<std::uint32_t>(name_rules_.size()))));
    }
    if (const auto met = name_rules_[event.name]; met != 0) kind = vocabulary_.kind(kind, met);
  }
  // A category that does not say where its time is spent: work on a stream of a device is the device's.
  const bool on_device = meaning.domain < 0 ? event.has_device && event.has_stream : meaning.domain == 1;
  return {kind, static_cast<std::uint8_t>(on_device ? 1 : 0)};
}

std::int32_t Collector::lane(const Event& event, const Resolved& what) {
  if (what.domain == 0) return lanes.get(event.process, event.thread, LaneType::thread);
  const std::int32_t found = lanes.get(event.process, event.thread, LaneType::stream);
  if (event.has_device) lanes.saw_device(found, event.device);
  return found;
}

void Collector::span_or_instant(const Event& event) {
  if (event.dur_state != NumberState::valid || event.dur < 0 || !in_clock(event)) {
    const bool missing = event.dur_state == NumberState::absent;
    notes_.add(missing ? Note::missing_duration : Note::invalid_duration, event.at);
    instant(event, missing ? InstantState::unfinished : InstantState::invalid);
    last_span_ = {~0ULL, ~0ULL};  // a flow behind it is not the flow of the span before it
    return;
  }
  if (event.unfinished) notes_.add(Note::not_finished, event.at);
  if (event.ts == 0 && event.dur == 0) notes_.add(Note::zero_time, event.at);
  const Resolved what = resolve(event);
  spans.name.push(event.name);
  spans.kind.push(what.kind);
  spans.domain.push(what.domain);
  spans.lane.push(lane(event, what));
  spans.start.push(event.ts);
  spans.dur.push(event.dur);
  spans.correlation.push(event.correlation);
  spans.external_id.push(event.external_id);
  spans.at.push(static_cast<std::int64_t>(event.at));
  if (event.python_id >= 0) [[unlikely]] {
    python_calls.push_back(
        {static_cast<std::int64_t>(spans.size()) - 1, event.process, event.python_id, event.python_parent});
  }
  last_span_ = {pair_of(event.process, event.thread), static_cast<std::uint64_t>(event.ts)};
}

void Collector::instant(const Event& event, InstantState state) {
  const Resolved what = resolve(event);
  instants.name.push(event.name);
  instants.kind.push(what.kind);
  instants.domain.push(what.domain);
  instants.state.push(static_cast<std::uint8_t>(state));
  instants.lane.push(lane(event, what));
  instants.ts.push(event.ts);
  instants.at.push(static_cast<std::int64_t>(event.at));
}

void Collector::push_counter(const Event& event, const SeriesName& name, double value) {
  const std::uint32_t id = name.id.empty() ? Interner::kNone : strings_.idents.code(name.id);
  const std::uint32_t found = series_index_.insert(
      {pair_of(name.counter, name.series), (static_cast<std::uint64_t>(id) << 1) | (name.memory ? 1U : 0U)});
  if (found == series_names.size()) series_names.push_back(name);
  counters.counter.push(found);
  counters.lane.push(lanes.get(event.process, Interner::kNone, LaneType::counter));
  counters.ts.push(event.ts);
  counters.value.push(value);
}

void Collector::counter(const Event& event, const Series& series) {
  bool any = false;
  for (const auto& [name, text] : series) {
    double value = 0;
    if (!read_real(text, value)) continue;
    any = true;
    push_counter(event, {event.name, strings_.names.code(name), std::string(event.id), false}, value);
  }
  if (!any) notes_.add(Note::counter_without_value, event.at);
}

void Collector::allocator_totals(const Event& event) {
  const std::uint32_t device =
      strings_.names.code(std::to_string(event.device_type) + ":" + std::to_string(event.device_id));
  push_counter(event, {strings_.names.code("allocated memory"), device, {}, true},
               static_cast<double>(event.allocated));
  push_counter(event, {strings_.names.code("reserved memory"), device, {}, true},
               static_cast<double>(event.reserved));
}

void Collector::metadata(const Event& event) {
  if (event.name == Interner::kNone) return;
  const std::string_view what = strings_.names.text(event.name);
  const bool of_thread = what.starts_with("thread_");
  if (!of_thread && !what.starts_with("process_")) return;
  const std::string_view field = what.substr(what.find('_') + 1);
  const std::uint32_t thread = of_thread ? event.thread : Interner::kNone;
  const std::uint32_t found = label_index_.insert({pair_of(event.process, thread), of_thread ? 1U : 0U});
  if (found == labels.size()) {
    labels.emplace_back();
    labels.back().process = event.process;
    labels.back().thread = thread;
    labels.back().of_thread = of_thread;
  }
  Label& label = labels[found];
  if (field == "name") {
    label.name = unescape(event.label).text;
  } else if (field == "labels") {
    label.labels = unescape(event.label).text;
  } else if (field == "sort_index") {
    label.sort_index = event.sort_index;
    label.has_sort_index = true;
  }
}

void Collector::flow(const Event& event) {
  using Phase = FlowPoints::Phase;
  const std::uint32_t group = group_of(event.process);
  // 63 bits are kept of it
  FlowPoints::Id id{event.category, event.name, -1, false, 0};
  id.scope = id_scope(event, group == kNoGroup ? 0 : pair_of(Interner::kNone >> 1, group)) & (~0ULL >> 1);
  const bool digits = event.id.find_first_not_of("-0123456789") == std::string_view::npos;
  const bool numeric = !event.id.empty() &&
                       (digits ? read_integer(event.id.data(), id.id) : read_hexadecimal(event.id, id.id));
  if (!numeric) {
    id.id = event.id.empty() ? -1 : static_cast<std::int64_t>(strings_.idents.code(event.id));
    id.textual = true;
  }
  const Phase phase = event.phase == 's' ? Phase::start : event.phase == 't' ? Phase::step : Phase::end;
  const Key thread{pair_of(event.process, event.thread), static_cast<std::uint64_t>(event.ts)};
  if (thread == last_span_) {
    flows.add(phase, id, static_cast<std::int64_t>(spans.size()) - 1);
  } else {
    const bool enclosing = phase != Phase::end || event.binding == 'e';
    flows.add(phase, id, FlowPoints::Place{event.process, event.thread, event.ts, enclosing});
  }
}

void Collector::paired(const Event& event, bool asynchronous) {
  const bool begins = event.phase == 'B' || event.phase == 'b' || event.phase == 'S';
  ++(begins ? counts.begins : counts.ends);
  const Resolved what = resolve(event);
  PairedEvent out;
  out.at = event.at;
  out.ts = event.ts;
  out.correlation = event.correlation;
  out.external_id = event.external_id;
  out.process = event.process;
  out.thread = event.thread;
  out.category = event.category;
  out.name = event.name;
  out.kind = what.kind;
  out.domain = what.domain;
  out.begins = begins;
  out.asynchronous = asynchronous;
  if (asynchronous) {
    const std::uint32_t id = strings_.idents.code(event.id);
    const std::uint64_t plain = event.scope.empty()
                                    ? pair_of(event.process, Interner::kNone)
                                    : pair_of(Interner::kNone, strings_.idents.code(event.scope));
    out.group = async_index_.insert({pair_of(event.category, id), id_scope(event, plain)});
  } else {
    out.group = pair_of(event.process, event.thread);
  }
  paired_.push_back(out);
}

// Merged recordings of several ranks carry the rank in front of each process id, "[TP00-DP00-PP00-EP00] 83",
// and every rank numbers its flows from 1.
std::uint32_t Collector::group_of(std::uint32_t process) {
  if (process == Interner::kNone) return kNoGroup;
  while (process_groups_.size() <= process) {
    const std::string_view text = strings_.idents.text(static_cast<std::uint32_t>(process_groups_.size()));
    const std::size_t close = text.starts_with('[') ? text.find("] ") : std::string_view::npos;
    std::uint32_t group = kNoGroup;
    if (close != std::string_view::npos) {
      const auto next = static_cast<std::uint32_t>(groups_.size());
      group = groups_.try_emplace(std::string(text.substr(0, close + 1)), next).first->second;
    }
    process_groups_.push_back(group);
  }
  return process_groups_[process];
}

std::vector<std::uint32_t> Collector::ranks_of_lanes() {
  std::vector<std::uint32_t> out;
  out.reserve(lanes.all().size());
  for (const Lane& lane : lanes.all()) {
    const std::uint32_t group = group_of(lane.process);
    out.push_back(group == kNoGroup ? 0 : group + 1);
  }
  return out;
}

// `plain` is the scope of an id that says nothing of its own.
std::uint64_t Collector::id_scope(const Event& event, std::uint64_t plain) {
  const std::uint32_t scope = event.scope.empty() ? Interner::kNone : strings_.idents.code(event.scope);
  switch (event.id_scope) {
    case IdScope::local:
      return pair_of(event.process, scope);
    case IdScope::global:
      return pair_of(Interner::kNone, scope);
    case IdScope::plain:
      break;
  }
  return plain;
}

// Records of time 0 and no duration beside those of a real clock were never filled in: when they ran is
// unknown.
void Collector::leave_out_zero_times() {
  const std::size_t n = spans.size();
  std::int64_t latest = 0;
  for (std::size_t row = 0; row < n; ++row) latest = std::max(latest, spans.start[row]);
  if (latest < kDay) return;
  std::vector<std::uint32_t> new_row_of(n);
  std::size_t kept = 0;
  for (std::size_t row = 0; row < n; ++row) {
    if (spans.start[row] == 0 && spans.dur[row] == 0) {
      new_row_of[row] = FlowPoints::kNoRow;
      instants.name.push(spans.name[row]);
      instants.kind.push(spans.kind[row]);
      instants.domain.push(spans.domain[row]);
      instants.state.push(static_cast<std::uint8_t>(InstantState::invalid));
      instants.lane.push(spans.lane[row]);
      instants.ts.push(0);
      instants.at.push(spans.at[row]);
      continue;
    }
    new_row_of[row] = static_cast<std::uint32_t>(kept);
    spans.name[kept] = spans.name[row];
    spans.kind[kept] = spans.kind[row];
    spans.domain[kept] = spans.domain[row];
    spans.lane[kept] = spans.lane[row];
    spans.start[kept] = spans.start[row];
    spans.dur[kept] = spans.dur[row];
    spans.correlation[kept] = spans.correlation[row];
    spans.external_id[kept] = spans.external_id[row];
    spans.at[kept] = spans.at[row];
    ++kept;
  }
  spans.name.resize(kept);
  spans.kind.resize(kept);
  spans.domain.resize(kept);
  spans.lane.resize(kept);
  spans.start.resize(kept);
  spans.dur.resize(kept);
  spans.correlation.resize(kept);
  spans.external_id.resize(kept);
  spans.at.resize(kept);
  flows.move_to(new_row_of);
  move_rows(new_row_of);
}

// Rows of spans were given other numbers.
void Collector::move_rows(std::span<const std::uint32_t> new_row_of) {
  std::erase_if(end_offsets, [&](EndOffset& end) {
    const std::uint32_t now = new_row_of[static_cast<std::size_t>(end.row)];
    end.row = now;
    return now == FlowPoints::kNoRow;
  });
  std::erase_if(python_calls, [&](PythonCall& call) {
    const std::uint32_t now = new_row_of[static_cast<std::size_t>(call.row)];
    call.row = now;
    return now == FlowPoints::kNoRow;
  });
}

void Collector::finish() {
  last_span_ = {~0ULL, ~0ULL};
  if (!paired_.empty()) {
    end_offsets = pair(paired_, spans, instants, lanes, notes_);
    paired_ = {};
    const std::vector<std::uint32_t> old_row_of = restore_order(spans, end_offsets);
    if (!old_row_of.empty()) {
      flows.renumber(old_row_of);
      std::vector<std::uint32_t> new_row_of(old_row_of.size());
      for (std::uint32_t row = 0; row < old_row_of.size(); ++row) new_row_of[old_row_of[row]] = row;
      for (PythonCall& call : python_calls) call.row = new_row_of[static_cast<std::size_t>(call.row)];
    }
  }
  if (notes_[Note::zero_time].count != 0) leave_out_zero_times();
}

}  // namespace torchtrt_viz::kineto
