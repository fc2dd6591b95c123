#include "formats/perfetto/trace_protobuf.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "formats/perfetto/protobuf.hpp"

namespace torchtrt_viz {
namespace {

// Numbers of Perfetto's messages and fields.
namespace field {
constexpr std::uint32_t packet = 1;                                        // Trace
constexpr std::uint32_t clock_snapshot = 6, timestamp = 8, sequence = 10;  // TracePacket
constexpr std::uint32_t track_event = 11, interned = 12, flags = 13, descriptor = 60;
constexpr std::uint32_t clocks = 1, clock_id = 1, clock_time = 2;           // ClockSnapshot
constexpr std::uint32_t uuid = 1, track_name = 2, process = 3, parent = 5;  // TrackDescriptor
constexpr std::uint32_t process_pid = 1, process_name = 6;                  // ProcessDescriptor
constexpr std::uint32_t category_iids = 3, annotations = 4, type = 9, name_iid = 10,
                        event_track = 11;                                          // TrackEvent
constexpr std::uint32_t annotation_json = 9, annotation_name = 10;                 // DebugAnnotation
constexpr std::uint32_t event_categories = 1, event_names = 2, iid = 1, text = 2;  // InternedData
}  // namespace field

constexpr std::uint64_t kSequence = 1;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2;
constexpr std::uint64_t kRealtime = 1, kBoottime = 6;  // builtin clocks; the second is what timestamps are in

class ProtoTrace {
 public:
  explicit ProtoTrace(std::string& out) : out_(out) {}

  void clocks(std::int64_t boot_ns, std::int64_t unix_ns) {
    std::string snapshot;
    for (const auto& [id, time] : {std::pair{kBoottime, boot_ns}, std::pair{kRealtime, unix_ns}}) {
      std::string clock;
      protobuf::integer(clock, field::clock_id, id);
      protobuf::integer(clock, field::clock_time, static_cast<std::uint64_t>(time));
      protobuf::bytes(snapshot, field::clocks, clock);
    }
    std::string packet;
    protobuf::bytes(packet, field::clock_snapshot, snapshot);
    protobuf::bytes(out_, field::packet, packet);
  }

  void process(std::uint64_t uuid, std::int64_t pid, const std::string& name) {
    std::string inner, track;
    protobuf::integer(inner, field::process_pid, static_cast<std::uint64_t>(pid));
    protobuf::bytes(inner, field::process_name, name);
    protobuf::integer(track, field::uuid, uuid);
    protobuf::bytes(track, field::process, inner);
    packet_of(field::descriptor, track);
  }

  void track(std::uint64_t uuid, std::uint64_t parent, const std::string& name) {
    std::string track;
    protobuf::integer(track, field::uuid, uuid);
    protobuf::bytes(track, field::track_name, name);
    protobuf::integer(track, field::parent, parent);
    packet_of(field::descriptor, track);
  }

  void texts(const TraceTable& table) {
    std::string interned;
    const auto add = [&](std::uint32_t kind, const std::vector<std::string>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::string entry;
        protobuf::integer(entry, field::iid, i + 1);
        protobuf::bytes(entry, field::text, values[i]);
        protobuf::bytes(interned, kind, entry);
      }
    };
    add(field::event_categories, table.categories);
    add(field::event_names, table.names);
    std::string packet;
    protobuf::integer(packet, field::sequence, kSequence);
    protobuf::bytes(packet, field::interned, interned);
    protobuf::integer(packet, field::flags, kStateCleared);
    protobuf::bytes(out_, field::packet, packet);
  }

  void begin(const TraceTable& table, std::size_t row, std::uint64_t uuid, std::uint64_t time) {
    event_.clear();
    if (!table.category.empty()) {
      protobuf::integer(event_, field::category_iids, static_cast<std::uint64_t>(table.category[row]) + 1);
    }
    if (!table.args.empty() && !table.args[row].empty()) {
      std::string annotation;
      protobuf::bytes(annotation, field::annotation_json, table.args[row]);
      protobuf::bytes(annotation, field::annotation_name, "args");
      protobuf::bytes(event_, field::annotations, annotation);
    }
    protobuf::integer(event_, field::type, kSliceBegin);
    protobuf::integer(event_, field::name_iid, static_cast<std::uint64_t>(table.name[row]) + 1);
    protobuf::integer(event_, field::event_track, uuid);
    event(time);
  }

  void end(std::uint64_t uuid, std::uint64_t time) {
    event_.clear();
    protobuf::integer(event_, field::type, kSliceEnd);
    protobuf::integer(event_, field::event_track, uuid);
    event(time);
  }

 private:
  void packet_of(std::uint32_t kind, const std::string& message) {
    std::string packet;
    protobuf::bytes(packet, kind, message);
    protobuf::bytes(out_, field::packet, packet);
  }
  void event(std::uint64_t time) {
    packet_.clear();
    protobuf::integer(packet_, field::timestamp, time);
    protobuf::integer(packet_, field::sequence, kSequence);
    protobuf::bytes(packet_, field::track_event, event_);
    protobuf::integer(packet_, field::flags, kNeedsState);
    protobuf::bytes(out_, field::packet, packet_);
  }
  std::string& out_;
  std::string event_, packet_;
};

// One row of slices that nest, of those that a track has.
struct Lane {
  std::uint64_t uuid = 0;
  std::vector<std::int64_t> open_ends;
};

// Writes a track's slices, given by rows in order of start, the longer first; a slice that nests in none of
// the lanes opens another one.
void write_track(ProtoTrace& trace, const TraceTable& table, std::span<const std::size_t> rows,
                 std::int64_t shift, std::uint64_t parent, const std::string& name,
                 std::uint64_t& next_uuid) {
  std::vector<Lane> lanes;
  const auto close = [&](Lane& lane, std::int64_t until) {
    while (!lane.open_ends.empty() && lane.open_ends.back() <= until) {
      trace.end(lane.uuid, static_cast<std::uint64_t>(lane.open_ends.back() + shift));
      lane.open_ends.pop_back();
    }
  };
  for (const auto row : rows) {
    const auto start = table.start_ns[row];
    const auto end = start + table.dur_ns[row];
    Lane* chosen = nullptr;
    for (auto& lane : lanes) {
      close(lane, start);
      if (lane.open_ends.empty() || lane.open_ends.back() >= end) {
        chosen = &lane;
        break;
      }
    }
    if (chosen == nullptr) {
      lanes.push_back({next_uuid++, {}});
      chosen = &lanes.back();
      trace.track(chosen->uuid, parent, name);
    }
    trace.begin(table, row, chosen->uuid, static_cast<std::uint64_t>(start + shift));
    if (end == start) {
      trace.end(chosen->uuid, static_cast<std::uint64_t>(end + shift));
    } else {
      chosen->open_ends.push_back(end);
    }
  }
  for (auto& lane : lanes) close(lane, std::numeric_limits<std::int64_t>::max());
}

}  // namespace

std::string trace_protobuf(const TraceTable& table, std::optional<std::int64_t> unix_base_ns) {
  table.check();
  std::string out;
  ProtoTrace trace(out);
  std::int64_t earliest = 0;
  for (const auto start : table.start_ns) earliest = std::min(earliest, start);
  const auto shift = -earliest;  // timestamps are unsigned
  if (unix_base_ns) trace.clocks(shift, *unix_base_ns);
  trace.texts(table);

  std::uint64_t next_uuid = 1;
  std::map<std::pair<std::int64_t, std::string>, std::uint64_t> processes;
  std::vector<std::size_t> order(table.name.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (table.track[a] != table.track[b]) return table.track[a] < table.track[b];
    if (table.start_ns[a] != table.start_ns[b]) return table.start_ns[a] < table.start_ns[b];
    return table.dur_ns[a] > table.dur_ns[b];
  });
  for (std::size_t first = 0; first < order.size();) {
    const auto row = table.track[order[first]];
    std::size_t last = first;
    while (last < order.size() && table.track[order[last]] == row) ++last;
    const auto& track = table.tracks[static_cast<std::size_t>(row)];
    const auto [process, fresh] = processes.try_emplace({track.pid, track.process}, next_uuid);
    if (fresh) trace.process(next_uuid++, track.pid, track.process);
    write_track(trace, table, std::span(order).subspan(first, last - first), shift, process->second,
                track.thread, next_uuid);
    first = last;
  }
  return out;
}

}  // namespace torchtrt_viz
