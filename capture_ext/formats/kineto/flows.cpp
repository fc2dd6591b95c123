#include "formats/kineto/flows.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "formats/kineto/enclosing.hpp"

namespace torchtrt_viz::kineto {

void FlowPoints::push(Phase phase, const Id& id, std::int64_t row) {
  const std::uint32_t kind = kind_index_.insert(
      {(static_cast<std::uint64_t>(id.category) << 32) | id.name, (id.scope << 1) | (id.textual ? 1U : 0U)});
  if (kind == kinds_.size()) kinds_.push_back({id.category, id.textual});
  phase_.push(static_cast<std::uint8_t>(phase));
  kind_.push(kind);
  id_.push(id.id);
  row_.push(row);
}

void FlowPoints::add(Phase phase, const Id& id, const Place& place) {
  push(phase, id, -2 - static_cast<std::int64_t>(places_.size()));
  places_.push_back(place);
}

void FlowPoints::renumber(const std::vector<std::uint32_t>& old_row_of) {
  std::vector<std::uint32_t> new_row_of(old_row_of.size());
  for (std::uint32_t row = 0; row < old_row_of.size(); ++row) new_row_of[old_row_of[row]] = row;
  move_to(new_row_of);
}

void FlowPoints::move_to(std::span<const std::uint32_t> new_row_of) {
  for (std::int64_t& row : row_.view()) {
    if (row < 0) continue;
    const std::uint32_t now = new_row_of[static_cast<std::size_t>(row)];
    row = now == kNoRow ? -1 : static_cast<std::int64_t>(now);
  }
}

std::int64_t FlowPoints::row_of(std::size_t point) const {
  const std::int64_t row = row_[point];
  return row >= -1 ? row : found_[static_cast<std::size_t>(-2 - row)];
}

std::int64_t FlowPoints::time_of(const Spans& spans, std::size_t point) const {
  const std::int64_t row = row_[point];
  if (row == -1) return std::numeric_limits<std::int64_t>::min();  // its span was left out, and had no time
  return row >= 0 ? spans.start[static_cast<std::size_t>(row)]
                  : places_[static_cast<std::size_t>(-2 - row)].ts;
}

void FlowPoints::emit(Flows& out, std::size_t point, std::int64_t source, std::int64_t target) const {
  const Kind& kind = kinds_[kind_[point]];
  out.category.push(kind.category);
  out.source.push(source);
  out.target.push(target);
  out.id.push(kind.textual ? -1 : id_[point]);
}

// Finds the spans of the points that did not stand behind theirs.
void FlowPoints::locate(const Spans& spans, const Lanes& lanes) {
  found_.assign(places_.size(), -1);
  if (places_.empty()) return;
  std::vector<PlaceQuery> queries;
  queries.reserve(places_.size());
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    // Both lanes are asked where host and device share an id; the span that begins later is the inner one.
    for (const LaneType type : {LaneType::thread, LaneType::stream}) {
      const std::int32_t lane = lanes.find(place.process, place.thread, type);
      if (lane >= 0) queries.push_back({lane, place.ts, i, place.enclosing, -1});
    }
  }
  find_spans(spans, lanes.all().size(), queries);
  for (const PlaceQuery& query : queries) {
    std::int64_t& best = found_[query.place];
    if (query.row < 0) continue;
    const auto start = [&](std::int64_t row) { return spans.start[static_cast<std::size_t>(row)]; };
    const bool better =
        best < 0 || (query.enclosing ? start(query.row) > start(best) : start(query.row) < start(best));
    if (better) best = query.row;
  }
}

Flows FlowPoints::connect(const Spans& spans, const Lanes& lanes) {
  Flows out;
  if (empty()) return out;
  locate(spans, lanes);
  const std::size_t n = phase_.size();
  KeyIndex index;
  std::vector<Group> groups;
  std::vector<std::uint32_t> group_of(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t group = index.insert({static_cast<std::uint64_t>(id_[i]), kind_[i]});
    if (group == groups.size()) groups.emplace_back();
    group_of[i] = group;
    Group& of = groups[group];
    switch (static_cast<Phase>(phase_[i])) {
      case Phase::start:
        if (of.starts++ == 0) of.start_row = row_of(i);
        break;
      case Phase::step:
        ++of.steps;
        break;
      case Phase::end:
        ++of.ends;
        break;
    }
  }
  std::vector<std::uint32_t> chained;
  for (std::size_t i = 0; i < n; ++i) {
    const Group& of = groups[group_of[i]];
    if (!of.simple()) {
      chained.push_back(static_cast<std::uint32_t>(i));
    } else if (static_cast<Phase>(phase_[i]) == Phase::end) {
      emit(out, i, of.start_row, row_of(i));
    } else if (of.ends == 0) {
      emit(out, i, of.start_row, -1);
    }
  }
  chain(spans, chained, group_of, out);
  return out;
}

void FlowPoints::chain(const Spans& spans, std::vector<std::uint32_t>& points,
                       const std::vector<std::uint32_t>& group_of, Flows& out) const {
  std::sort(points.begin(), points.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(group_of[a], time_of(spans, a), phase_[a], a) <
           std::tuple(group_of[b], time_of(spans, b), phase_[b], b);
  });
  constexpr std::uint32_t kNothing = 0xFFFFFFFF;
  std::uint32_t last = kNothing;  // start or step that the next point is led to from
  bool led_on = true;             // something follows `last`
  const auto leave = [&] {
    if (last != kNothing && !led_on) emit(out, last, row_of(last), -1);
    last = kNothing;
    led_on = true;
  };
  std::uint32_t group = kNothing;
  for (const std::uint32_t point : points) {
    if (group_of[point] != group) leave();
    group = group_of[point];
    const auto phase = static_cast<Phase>(phase_[point]);
    if (phase == Phase::start) {
      leave();
    } else {
      emit(out, point, last == kNothing ? -1 : row_of(last), row_of(point));
      led_on = true;
    }
    if (phase != Phase::end) {
      last = point;
      led_on = false;
    }
  }
  leave();
}

}  // namespace torchtrt_viz::kineto
