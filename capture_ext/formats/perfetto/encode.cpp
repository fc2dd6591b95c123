#include "formats/perfetto/encode.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "formats/perfetto/fields.hpp"

namespace torchtrt_viz::perfetto {
namespace {

constexpr std::uint32_t kSequence = 1;
constexpr std::size_t kMostLanesSearched = 1000;
constexpr std::size_t kNamesPerPacket = 4096;
// Interned ids of the annotations' names.
enum Annotation : std::uint64_t { kCorrelation = 1, kExternalId, kIteration, kRunId };
constexpr std::string_view kAnnotationNames[] = {"correlation", "external_id", "iteration", "run_id"};

std::int64_t end_of(std::int64_t start, std::int64_t dur) {
  std::int64_t end = 0;
  return __builtin_add_overflow(start, dur, &end) ? INT64_MAX : end;
}

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3);
  put_varint(out, value);
}

void put_fixed64(std::string& out, std::uint32_t field, std::uint64_t value) {
  put_varint(out, (static_cast<std::uint64_t>(field) << 3) | 1);
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  out.append(bytes, 8);
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_varint(out, (static_cast<std::uint64_t>(field) << 3) | 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}

void put_annotation(std::string& out, Annotation name, std::int64_t value) {
  std::string body;
  put_number(body, annotation_field::kNameIid, name);
  put_number(body, annotation_field::kInt, static_cast<std::uint64_t>(value));
  put_bytes(out, event_field::kDebugAnnotations, body);
}

std::string entry(std::uint64_t iid, std::string_view text) {
  std::string body;
  put_number(body, 1, iid);
  put_bytes(body, 2, text);
  return body;
}

// A packet of the one sequence that everything is written on.
void put_packet(std::string& out, std::string_view fields, std::uint64_t flags) {
  std::string body;
  put_number(body, packet_field::kSequenceId, kSequence);
  if (flags != 0) put_number(body, packet_field::kSequenceFlags, flags);
  body.append(fields);
  put_bytes(out, trace_field::kPacket, body);
}

std::string descriptor(const TrackRow& track) {
  std::string body;
  put_number(body, descriptor_field::kUuid, track.uuid);
  if (track.parent != 0) put_number(body, descriptor_field::kParent, track.parent);
  if (track.process) {
    std::string process;
    put_number(process, process_field::kPid, static_cast<std::uint64_t>(track.pid));
    put_bytes(process, process_field::kName, track.name);
    put_bytes(body, descriptor_field::kProcess, process);
  } else if (track.thread) {
    std::string thread;
    put_number(thread, thread_field::kPid, static_cast<std::uint64_t>(track.pid));
    put_number(thread, thread_field::kTid, static_cast<std::uint64_t>(track.tid));
    put_bytes(thread, thread_field::kName, track.name);
    put_bytes(body, descriptor_field::kThread, thread);
  } else {
    put_bytes(body, descriptor_field::kName, track.name);
  }
  if (track.counter) {
    std::string counter;
    if (!track.unit.empty()) put_bytes(counter, counter_field::kUnitName, track.unit);
    put_bytes(body, descriptor_field::kCounter, counter);
  }
  if (track.explicit_order) put_number(body, descriptor_field::kChildOrdering, 3);
  if (track.order != 0) {
    put_number(body, descriptor_field::kOrderRank,
               static_cast<std::uint64_t>(static_cast<std::int64_t>(track.order)));
  }
  if (!track.description.empty()) put_bytes(body, descriptor_field::kDescription, track.description);
  return body;
}

template <typename Take>
void in_nesting_order(std::span<const std::uint64_t> lane, std::span<const std::int64_t> start,
                      std::span<const std::int64_t> dur, Take&& take) {
  std::vector<std::int64_t> order(lane.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto i = static_cast<std::size_t>(a);
    const auto j = static_cast<std::size_t>(b);
    if (lane[i] != lane[j]) return lane[i] < lane[j];
    if (start[i] != start[j]) return start[i] < start[j];
    if (dur[i] != dur[j]) return dur[i] > dur[j];
    return a < b;
  });
  for (const std::int64_t row : order) take(row);
}

}  // namespace

std::vector<std::int32_t> assign_lanes(std::span<const std::int32_t> track,
                                       std::span<const std::int64_t> start,
                                       std::span<const std::int64_t> dur) {
  std::vector<std::int32_t> lane(track.size(), 0);
  std::vector<std::int64_t> order(track.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto at = [](std::int64_t row) { return static_cast<std::size_t>(row); };
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    if (track[at(a)] != track[at(b)]) return track[at(a)] < track[at(b)];
    if (start[at(a)] != start[at(b)]) return start[at(a)] < start[at(b)];
    if (dur[at(a)] != dur[at(b)]) return dur[at(a)] > dur[at(b)];
    return a < b;
  });
  std::vector<std::vector<std::int64_t>> open;  // per lane the ends of the open spans, innermost last
  std::int32_t current = 0;
  bool first = true;
  for (const std::int64_t row : order) {
    if (first || track[at(row)] != current) {
      open.clear();
      current = track[at(row)];
      first = false;
    }
    const std::int64_t begin = start[at(row)];
    const std::int64_t end = end_of(begin, dur[at(row)]);
    std::size_t chosen = open.size();
    for (std::size_t i = 0; i < open.size() && i < kMostLanesSearched; ++i) {
      std::vector<std::int64_t>& ends = open[i];
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      if (ends.empty() || ends.back() >= end) {
        chosen = i;
        break;
      }
    }
    if (chosen == open.size()) open.emplace_back();
    open[chosen].push_back(end);
    lane[at(row)] = static_cast<std::int32_t>(chosen);
  }
  return lane;
}

Encoder::Encoder(SpanColumns spans, InstantColumns instants, CounterColumns counters, FlowColumns flows,
                 std::vector<std::string> names, std::vector<std::string> categories,
                 std::vector<std::string> runs, std::int64_t origin)
    : spans_(spans),
      instants_(instants),
      counters_(counters),
      flows_(flows),
      names_(std::move(names)),
      categories_(std::move(categories)),
      runs_(std::move(runs)),
      origin_(origin) {
  assign_flows();
  order_events();
}

void Encoder::set_arguments(std::vector<std::string> arguments) { arguments_ = std::move(arguments); }

// Per lane begins and ends nest; over lanes events are in order of time. The second sort is stable, so that
// events of one time keep the order of their lane: an end comes before the begin that follows it.
void Encoder::order_events() {
  order_lanes();
  const auto& instants = instants_;
  for (std::size_t i = 0; i < instants.ts.size(); ++i) {
    order_.push_back({instants.ts[i], static_cast<std::int64_t>(i), Event::Type::kInstant});
  }
  for (std::size_t i = 0; i < counters_.ts.size(); ++i) {
    order_.push_back({counters_.ts[i], static_cast<std::int64_t>(i), Event::Type::kCounter});
  }
  std::stable_sort(order_.begin(), order_.end(), [](const Event& a, const Event& b) { return a.ts < b.ts; });
}

void Encoder::order_lanes() {
  struct Open {
    std::int64_t row;
    std::int64_t end;
  };
  std::vector<Open> stack;
  const auto close_until = [&](std::int64_t time) {
    while (!stack.empty() && stack.back().end <= time) {
      order_.push_back({stack.back().end, stack.back().row, Event::Type::kEnd});
      stack.pop_back();
    }
  };
  std::uint64_t current = 0;
  order_.reserve(2 * spans_.lane.size() + instants_.ts.size() + counters_.ts.size());
  in_nesting_order(spans_.lane, spans_.start, spans_.dur, [&](std::int64_t row) {
    const auto i = static_cast<std::size_t>(row);
    if (spans_.lane[i] != current) {
      close_until(INT64_MAX);
      current = spans_.lane[i];
    }
    close_until(spans_.start[i]);
    order_.push_back({spans_.start[i], row, Event::Type::kBegin});
    if (spans_.dur[i] >= 0) stack.push_back({row, end_of(spans_.start[i], spans_.dur[i])});
  });
  close_until(INT64_MAX);
}

void Encoder::assign_flows() {
  const std::size_t rows = spans_.lane.size();
  first_flow_.assign(rows + 1, 0);
  const auto usable = [&](std::size_t i) {
    const std::int64_t source = flows_.source[i];
    const std::int64_t target = flows_.target[i];
    if (source < 0 || target < 0 || source == target) return false;
    return spans_.start[static_cast<std::size_t>(source)] <= spans_.start[static_cast<std::size_t>(target)];
  };
  for (std::size_t i = 0; i < flows_.source.size(); ++i) {
    if (!usable(i)) {
      ++flows_left_out_;
      continue;
    }
    ++first_flow_[static_cast<std::size_t>(flows_.source[i]) + 1];
    ++first_flow_[static_cast<std::size_t>(flows_.target[i]) + 1];
  }
  std::partial_sum(first_flow_.begin(), first_flow_.end(), first_flow_.begin());
  flow_uses_.resize(first_flow_.back());
  std::vector<std::uint32_t> next(first_flow_.begin(), first_flow_.end() - 1);
  for (std::size_t i = 0; i < flows_.source.size(); ++i) {
    if (!usable(i)) continue;
    const std::uint64_t id = i + 1;
    flow_uses_[next[static_cast<std::size_t>(flows_.source[i])]++] = {id, false};
    flow_uses_[next[static_cast<std::size_t>(flows_.target[i])]++] = {id, true};
  }
}

std::string Encoder::head(const std::vector<TrackRow>& tracks, bool has_unix, std::int64_t unix_ns_of_origin,
                          std::string_view metadata_name, std::string_view metadata) const {
  std::string out;
  if (has_unix && unix_ns_of_origin >= 0) {
    std::string snapshot;
    const auto reading = [&](std::uint32_t clock, std::int64_t ns) {
      std::string body;
      put_number(body, snapshot_field::kClockId, clock);
      put_number(body, snapshot_field::kTimestamp, static_cast<std::uint64_t>(ns));
      put_bytes(snapshot, snapshot_field::kClocks, body);
    };
    reading(clock_id::kBoottime, 0);
    reading(clock_id::kRealtime, unix_ns_of_origin);
    std::string packet;
    put_bytes(packet, packet_field::kClockSnapshot, snapshot);
    put_packet(out, packet, kFlagStateCleared);
  }
  if (!metadata_name.empty()) {
    std::string item;
    put_bytes(item, 1, metadata_name);
    put_bytes(item, 2, metadata);
    std::string bundle;
    put_bytes(bundle, 2, item);
    std::string packet;
    put_bytes(packet, packet_field::kChromeEvents, bundle);
    put_packet(out, packet, 0);
  }
  for (const TrackRow& track : tracks) {
    std::string packet;
    put_bytes(packet, packet_field::kTrackDescriptor, descriptor(track));
    put_packet(out, packet, 0);
  }
  std::string interned;
  std::uint64_t flags = kFlagStateCleared;
  const auto flush = [&] {
    std::string packet;
    put_bytes(packet, packet_field::kInternedData, interned);
    put_packet(out, packet, flags);
    flags = kFlagNeedsState;
    interned.clear();
  };
  for (std::size_t i = 0; i < categories_.size(); ++i) {
    put_bytes(interned, interned_field::kCategories, entry(i + 1, categories_[i]));
  }
  for (std::size_t i = 0; i < std::size(kAnnotationNames); ++i) {
    put_bytes(interned, interned_field::kAnnotationNames, entry(i + 1, kAnnotationNames[i]));
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    put_bytes(interned, interned_field::kAnnotationStrings, entry(i + 1, runs_[i]));
  }
  flush();
  for (std::size_t i = 0; i < names_.size(); ++i) {
    put_bytes(interned, interned_field::kNames, entry(i + 1, names_[i]));
    if ((i + 1) % kNamesPerPacket == 0) flush();
  }
  if (!interned.empty()) flush();
  return out;
}

void Encoder::write_event(const Event& event, std::string& out, std::string& packet,
                          std::string& body) const {
  const auto row = static_cast<std::size_t>(event.row);
  body.clear();
  const auto named = [&](std::uint64_t type, const auto& columns) {
    put_number(body, event_field::kType, type);
    put_number(body, event_field::kTrackUuid, columns.lane[row]);
    if (columns.name[row] >= 0)
      put_number(body, event_field::kNameIid, static_cast<std::uint64_t>(columns.name[row]) + 1);
    for (const std::int32_t category : {columns.category[row], columns.domain[row]}) {
      if (category >= 0)
        put_number(body, event_field::kCategoryIids, static_cast<std::uint64_t>(category) + 1);
    }
  };
  switch (event.type) {
    case Event::Type::kBegin:
      named(event_type::kSliceBegin, spans_);
      if (spans_.timing[row] >= 0) {
        put_number(body, event_field::kCategoryIids, static_cast<std::uint64_t>(spans_.timing[row]) + 1);
      }
      if (spans_.correlation[row] != -1) put_annotation(body, kCorrelation, spans_.correlation[row]);
      if (spans_.external_id[row] != -1) put_annotation(body, kExternalId, spans_.external_id[row]);
      if (spans_.iteration[row] != -1) put_annotation(body, kIteration, spans_.iteration[row]);
      if (spans_.run[row] >= 0) {
        std::string annotation;
        put_number(annotation, annotation_field::kNameIid, kRunId);
        put_number(annotation, annotation_field::kStringIid, static_cast<std::uint64_t>(spans_.run[row]) + 1);
        put_bytes(body, event_field::kDebugAnnotations, annotation);
      }
      if (row < arguments_.size()) body.append(arguments_[row]);
      for (std::uint32_t i = first_flow_[row]; i < first_flow_[row + 1]; ++i) {
        const FlowUse& use = flow_uses_[i];
        put_fixed64(body, use.terminating ? event_field::kTerminatingFlowIds : event_field::kFlowIds, use.id);
      }
      break;
    case Event::Type::kEnd:
      put_number(body, event_field::kType, event_type::kSliceEnd);
      put_number(body, event_field::kTrackUuid, spans_.lane[row]);
      break;
    case Event::Type::kInstant:
      named(event_type::kInstant, instants_);
      break;
    case Event::Type::kCounter:
      put_number(body, event_field::kType, event_type::kCounter);
      put_number(body, event_field::kTrackUuid, counters_.lane[row]);
      put_fixed64(body, event_field::kDoubleCounterValue, std::bit_cast<std::uint64_t>(counters_.value[row]));
      break;
  }
  packet.clear();
  put_number(packet, packet_field::kTimestamp, static_cast<std::uint64_t>(event.ts - origin_));
  put_number(packet, packet_field::kSequenceId, kSequence);
  put_number(packet, packet_field::kSequenceFlags, kFlagNeedsState);
  put_bytes(packet, packet_field::kTrackEvent, body);
  put_bytes(out, trace_field::kPacket, packet);
}

std::vector<std::int64_t> Encoder::written_rows() const {
  std::vector<std::int64_t> rows;
  rows.reserve(spans_.lane.size());
  for (const Event& event : order_) {
    const bool whole =
        event.type == Event::Type::kBegin && spans_.dur[static_cast<std::size_t>(event.row)] >= 0;
    if (whole) rows.push_back(event.row);
  }
  return rows;
}

std::string Encoder::packets(std::size_t begin, std::size_t end) const {
  std::string out;
  std::string packet;
  std::string body;
  out.reserve((end - begin) * 40);
  for (std::size_t i = begin; i < end && i < order_.size(); ++i) write_event(order_[i], out, packet, body);
  return out;
}

}  // namespace torchtrt_viz::perfetto
