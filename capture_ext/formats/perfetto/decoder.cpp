#include "formats/perfetto/decoder.hpp"

#include <algorithm>
#include <unordered_map>

#include "formats/perfetto/fields.hpp"
#include "formats/perfetto/track_event.hpp"

namespace torchtrt_viz::perfetto {
namespace {

constexpr std::size_t kLongestMetadata = 256 << 20;

// The fields of a packet that are used, gathered before any is acted on: their order in it is free.
struct Packet {
  std::size_t offset = 0;
  std::uint32_t sequence = 0;
  std::uint64_t flags = 0;
  std::optional<std::uint64_t> timestamp;
  std::uint32_t clock = 0;
  bool state_cleared = false;
  bool dropped = false;
  bool first = false;
  Bytes interned, defaults, event, descriptor, process, thread, chrome;
  std::vector<Bytes> snapshots;
  std::uint32_t other = 0;  // field of data of another kind
  Bytes other_data;
  std::uint32_t bytes = 0;
  bool has_interned = false, has_defaults = false, has_event = false, has_descriptor = false,
       has_process = false, has_thread = false, has_chrome = false, compressed = false;
};

bool read_packet(Bytes message, Packet& packet) {
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case packet_field::kSequenceId:
        packet.sequence = static_cast<std::uint32_t>(fields.value());
        break;
      case packet_field::kTimestamp:
        packet.timestamp = fields.value();
        break;
      case packet_field::kClockId:
        packet.clock = static_cast<std::uint32_t>(fields.value());
        break;
      case packet_field::kSequenceFlags:
        packet.flags = fields.value();
        break;
      case packet_field::kStateCleared:
        packet.state_cleared = fields.value() != 0;
        break;
      case packet_field::kPacketDropped:
        packet.dropped = fields.value() != 0;
        break;
      case packet_field::kFirstOnSequence:
        packet.first = fields.value() != 0;
        break;
      case packet_field::kTrackEvent:
        packet.event = fields.bytes();
        packet.has_event = true;
        break;
      case packet_field::kInternedData:
        packet.interned = fields.bytes();
        packet.has_interned = true;
        break;
      case packet_field::kDefaults:
        packet.defaults = fields.bytes();
        packet.has_defaults = true;
        break;
      case packet_field::kTrackDescriptor:
        packet.descriptor = fields.bytes();
        packet.has_descriptor = true;
        break;
      case packet_field::kProcessDescriptor:
        packet.process = fields.bytes();
        packet.has_process = true;
        break;
      case packet_field::kThreadDescriptor:
        packet.thread = fields.bytes();
        packet.has_thread = true;
        break;
      case packet_field::kClockSnapshot:
        packet.snapshots.push_back(fields.bytes());
        break;
      case packet_field::kChromeEvents:
        packet.chrome = fields.bytes();
        packet.has_chrome = true;
        break;
      case packet_field::kCompressed:
      case packet_field::kZstdCompressed:
        packet.compressed = true;
        break;
      default:
        if (fields.wire() == Wire::kLength) {
          packet.other = fields.number();
          packet.other_data = fields.bytes();
        }
        break;
    }
  }
  packet.state_cleared |= (packet.flags & kFlagStateCleared) != 0;
  return !fields.damaged();
}

// The field that holds the data of a packet; 0 for none.
std::uint32_t field_of(const Packet& packet) {
  using namespace packet_field;
  if (packet.has_event) return kTrackEvent;
  if (packet.other != 0) return packet.other;
  if (packet.has_descriptor) return kTrackDescriptor;
  if (packet.has_process) return kProcessDescriptor;
  if (packet.has_thread) return kThreadDescriptor;
  if (packet.has_chrome) return kChromeEvents;
  if (!packet.snapshots.empty()) return kClockSnapshot;
  return packet.compressed ? kCompressed : 0;
}

// Calls `take(message, offset of the packet, its size)` for each packet, `pass` for what else the trace
// holds; returns the offset of a cut or damaged packet.
template <typename Take, typename Pass>
std::optional<std::size_t> each_packet(Bytes trace, Take&& take, Pass&& pass) {
  Fields fields(trace);
  while (fields.next()) {
    if (fields.number() == trace_field::kPacket && fields.wire() == Wire::kLength) {
      take(fields.bytes(), fields.offset(), fields.encoded().size());
    } else {
      pass(fields.number(), fields.encoded().size());
    }
  }
  if (fields.damaged()) return fields.offset();
  return std::nullopt;
}

class Decoder {
 public:
  explicit Decoder(Bytes trace)
      : bytes_(trace),
        names_(out_.strings),
        gpu_(out_.strings, out_.tracks, out_.arguments, marks_, out_.counters) {}

  Trace run() {
    read_clocks();
    clocks_.choose_target();
    out_.clock = clocks_.target();
    out_.unix_offset = clocks_.unix_offset();

    out_.accounting.bytes = bytes_.size();
    const auto cut = each_packet(
        bytes_,
        [&](Bytes message, std::size_t offset, std::size_t size) {
          Packet packet;
          packet.offset = offset;
          packet.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(size, 0xFFFFFFFF));
          ++out_.packets;
          if (read_packet(message, packet)) {
            out_.accounting.identified += packet.sequence != 0 || packet.timestamp ? 1 : 0;
            add(count_of(packet, take(packet)), packet.bytes);
          } else {
            note(Problem::kDamagedPacket, offset);
            add(left_out(Problem::kDamagedPacket), packet.bytes);
          }
        },
        [&](std::uint32_t number, std::size_t size) { add(out_.accounting.other_fields[number], size); });
    if (cut) {
      note(Problem::kTruncated, *cut);
      out_.accounting.cut_bytes = bytes_.size() - *cut;
    }
    settle_other_clocks();
    out_.tracks.fill_names();
    RowOfMark row_of_mark;
    out_.slices = build_slices(marks_, out_.tracks.all().size(), row_of_mark);
    link_work(marks_, row_of_mark, out_.slices);
    return std::move(out_);
  }

 private:
  // What becomes of a packet.
  enum class Fate : std::uint8_t { kRead, kUnread, kUnreadEvent, kUnreadPhase, kLeftOut };
  struct Outcome {
    Fate fate = Fate::kRead;
    Problem problem = Problem::kCount;  // of what is left out
    Outcome() = default;
    Outcome(Fate is) : fate(is) {}                                // NOLINT(google-explicit-constructor)
    Outcome(Problem why) : fate(Fate::kLeftOut), problem(why) {}  // NOLINT(google-explicit-constructor)
  };

  static void add(Count& count, std::uint64_t bytes) {
    ++count.packets;
    count.bytes += bytes;
  }
  Count& left_out(Problem problem) { return out_.accounting.left_out[static_cast<std::size_t>(problem)]; }
  Count& count_of(const Packet& packet, Outcome outcome) {
    switch (outcome.fate) {
      case Fate::kUnread:
        return out_.accounting.unread[field_of(packet)];
      case Fate::kUnreadEvent:
        return out_.accounting.unread_events[event_.type];
      case Fate::kUnreadPhase:
        return out_.accounting.unread_phases[event_.legacy->phase];
      case Fate::kLeftOut:
        return left_out(outcome.problem);
      default:
        return out_.accounting.read[field_of(packet)];
    }
  }

  void read_clocks() {
    each_packet(
        bytes_,
        [&](Bytes message, std::size_t, std::size_t) {
          Fields fields(message);
          std::uint32_t sequence = 0;
          std::vector<Bytes> snapshots;
          while (fields.next()) {
            if (fields.number() == packet_field::kSequenceId)
              sequence = static_cast<std::uint32_t>(fields.value());
            if (fields.number() == packet_field::kClockSnapshot) snapshots.push_back(fields.bytes());
          }
          for (const Bytes snapshot : snapshots) clocks_.add(sequence, snapshot);
        },
        [](std::uint32_t, std::size_t) {});
  }

  void note(Problem problem, std::size_t offset, std::uint64_t count = 1) {
    Tally& tally = out_.problems[static_cast<std::size_t>(problem)];
    if (tally.count == 0) tally.offset = offset;
    tally.count += count;
  }

  Outcome take(const Packet& packet) {
    Sequence& sequence = sequences_[packet.sequence];
    sequence.id = packet.sequence;
    if (packet.dropped && !packet.first) sequence.state_valid = false;
    if (packet.state_cleared) sequence.clear_state();
    for (const Bytes snapshot : packet.snapshots) {
      for (const Clocks::Reading& reading : clocks_.readings(snapshot)) {
        if (reading.incremental) sequence.incremental[reading.clock] = reading.ns;
      }
    }
    if ((packet.flags & kFlagNeedsState) != 0 && !sequence.state_valid) {
      note(Problem::kMissingState, packet.offset);
      return Problem::kMissingState;
    }
    bool damaged = false;
    if (packet.has_defaults) sequence.defaults = read_defaults(packet.defaults);
    if (packet.has_interned) {
      if (sequence.epoch == kNoEpoch) sequence.epoch = out_.arguments.new_epoch();
      damaged |= !out_.arguments.epoch(sequence.epoch).add(packet.interned, out_.strings);
      damaged |= !sequence.gpu.add(packet.interned, out_.strings);
    }
    if (packet.has_process) out_.tracks.describe_process(packet.process, out_.strings);
    if (packet.has_thread) out_.tracks.describe_thread(packet.thread, out_.strings, sequence);
    if (packet.has_descriptor) damaged |= !out_.tracks.describe(packet.descriptor, out_.strings);
    if (damaged) note(Problem::kDamagedMessage, packet.offset);
    if (packet.has_chrome) take_metadata(packet.chrome);
    if (packet.has_event) return take_event(packet, sequence);
    if (is_gpu_packet(packet.other)) return take_gpu(packet, sequence);
    if (packet.other == packet_field::kProcessTree) {
      if (out_.tracks.describe_tree(packet.other_data, out_.strings)) return Fate::kRead;
      note(Problem::kDamagedMessage, packet.offset);
      return Problem::kDamagedMessage;
    }
    if (packet.other != 0) return Fate::kUnread;
    if (packet.compressed) {
      note(Problem::kCompressed, packet.offset);
      return Problem::kCompressed;
    }
    if (damaged && !packet.has_interned) return Problem::kDamagedMessage;
    return Fate::kRead;
  }

  // Where the marks and counters of a packet begin, so that they can be taken out again.
  void begin_event(const Packet& packet, std::uint32_t off_clock) {
    if (off_clock != 0) {
      off_clock_events_.push_back({marks_.marks.size(), out_.counters.ts.size(), off_clock, packet.offset,
                                   field_of(packet), packet.bytes});
    } else {
      ++on_clock_;
    }
  }
  void end_event(std::uint32_t off_clock) {
    if (off_clock != 0) {
      off_clock_events_.back().marks_end = marks_.marks.size();
      off_clock_events_.back().counters_end = out_.counters.ts.size();
    }
  }

  Outcome take_gpu(const Packet& packet, Sequence& sequence) {
    GpuEvents::Outcome outcome;
    gpu_.describe(packet.other, packet.other_data, sequence, outcome);
    bool added = false;
    std::uint32_t off_clock = 0;
    if (GpuEvents::has_event(packet.other, packet.other_data)) {
      const std::optional<std::int64_t> ts = packet_time(packet, sequence, off_clock);
      if (!ts || *ts < 0 || *ts > kLargestTime) {
        note(Problem::kNoTime, packet.offset);
        return Problem::kNoTime;
      }
      begin_event(packet, off_clock);
      const std::size_t before = marks_.marks.size() + out_.counters.ts.size();
      gpu_.take(packet.other, packet.other_data, sequence, *ts, packet.bytes, outcome);
      end_event(off_clock);
      added = marks_.marks.size() + out_.counters.ts.size() > before;
    }
    if (outcome.missing_names > 0) note(Problem::kMissingString, packet.offset, outcome.missing_names);
    if (outcome.damaged) note(Problem::kDamagedMessage, packet.offset);
    if (outcome.no_time) note(Problem::kNoTime, packet.offset);
    if (added || !(outcome.damaged || outcome.no_time)) return Fate::kRead;
    if (off_clock != 0) off_clock_events_.pop_back();
    return outcome.damaged ? Problem::kDamagedMessage : Problem::kNoTime;
  }

  // Metadata of ChromeEventBundle: name and a text value.
  void take_metadata(Bytes bundle) {
    Fields fields(bundle);
    while (fields.next()) {
      if (fields.number() != 2) continue;
      Fields entry(fields.bytes());
      std::string_view name;
      std::string_view value;
      while (entry.next()) {
        if (entry.number() == 1) name = entry.text();
        if (entry.number() == 2 || entry.number() == 5) value = entry.text();
      }
      metadata_bytes_ += name.size() + value.size();
      if (metadata_bytes_ <= kLongestMetadata) out_.metadata.emplace_back(name, value);
    }
  }

  // The time of the packet on the trace's clock. `off_clock` is set to the clock when it leads nowhere: the
  // time is then on that clock.
  std::optional<std::int64_t> packet_time(const Packet& packet, Sequence& sequence,
                                          std::uint32_t& off_clock) {
    if (!packet.timestamp) return std::nullopt;
    std::uint32_t clock = packet.clock != 0 ? packet.clock : sequence.defaults.clock;
    if (clock == 0) clock = clocks_.target();
    std::optional<std::int64_t> ns = clocks_.nanoseconds(sequence.id, clock, *packet.timestamp);
    if (!ns) return std::nullopt;
    if (clocks_.incremental(sequence.id, clock)) {
      std::int64_t& last = sequence.incremental[clock];
      if (__builtin_add_overflow(last, *ns, &last)) return std::nullopt;
      ns = last;
    }
    const std::optional<std::int64_t> converted = clocks_.convert(sequence.id, clock, *ns);
    if (converted) return converted;
    off_clock = clock;
    return ns;
  }

  std::optional<std::int64_t> event_time(const Packet& packet, Sequence& sequence, const TrackEvent& event,
                                         std::uint32_t& off_clock) {
    std::optional<std::int64_t> us = event.absolute_us;
    if (event.delta_us && sequence.has_thread) {
      if (__builtin_add_overflow(sequence.reference_us, *event.delta_us, &sequence.reference_us))
        return std::nullopt;
      us = sequence.reference_us;
    }
    if (!us) return packet_time(packet, sequence, off_clock);
    std::int64_t ns = 0;
    if (__builtin_mul_overflow(*us, std::int64_t{1000}, &ns)) return std::nullopt;
    // such times are on the monotonic clock
    const std::optional<std::int64_t> converted = clocks_.convert(sequence.id, clock_id::kMonotonic, ns);
    if (converted) return converted;
    off_clock = clock_id::kMonotonic;
    return ns;
  }

  Outcome take_event(const Packet& packet, Sequence& sequence) {
    const Interned* interned = sequence.epoch == kNoEpoch ? nullptr : &out_.arguments.epoch(sequence.epoch);
    if (!read_track_event(packet.event, interned, names_, out_.strings, event_)) {
      note(Problem::kDamagedMessage, packet.offset);
      return Problem::kDamagedMessage;
    }
    if (event_.missing_names > 0) note(Problem::kMissingString, packet.offset, event_.missing_names);
    std::uint32_t off_clock = 0;
    const std::optional<std::int64_t> ts = event_time(packet, sequence, event_, off_clock);
    if (!ts || *ts < 0 || *ts > kLargestTime) {
      note(Problem::kNoTime, packet.offset);
      return Problem::kNoTime;
    }
    if (event_.legacy && event_.legacy->binds) note(Problem::kLegacyFlow, packet.offset);
    packet_bytes_ = packet.bytes;
    begin_event(packet, off_clock);
    const std::size_t counters = out_.counters.ts.size();
    extra_counters(sequence, *ts);
    Outcome outcome = place_event(packet, sequence, *ts);
    end_event(off_clock);
    // values of further counters make an event one that was read, whatever else it is
    if (out_.counters.ts.size() > counters) outcome = Fate::kRead;
    if (off_clock != 0 && outcome.fate != Fate::kRead) off_clock_events_.pop_back();
    return outcome;
  }

  Outcome place_event(const Packet& packet, Sequence& sequence, std::int64_t ts) {
    Mark mark;
    switch (event_.type) {
      case event_type::kCounter:
        if (!event_.value) {
          note(Problem::kNoValue, packet.offset);
          return Problem::kNoValue;
        }
        add_counter(track_of(sequence), sequence, ts, *event_.value);
        return Fate::kRead;
      case event_type::kUnspecified:
        return event_.legacy ? take_legacy(packet, sequence, ts) : Outcome(Fate::kUnreadEvent);
      case event_type::kSliceBegin:
        mark.type = Mark::Type::kBegin;
        break;
      case event_type::kSliceEnd:
        mark.type = Mark::Type::kEnd;
        break;
      case event_type::kInstant:
        mark.type = Mark::Type::kInstant;
        break;
      default:
        return Fate::kUnreadEvent;
    }
    mark.track = track_of(sequence);
    add_mark(mark, sequence, ts);
    return Fate::kRead;
  }

  std::int32_t track_of(Sequence& sequence) {
    if (event_.track) return out_.tracks.of_uuid(*event_.track);
    if (event_.legacy && (event_.legacy->pid || event_.legacy->tid)) {
      return out_.tracks.of_thread(event_.legacy->pid.value_or(sequence.pid),
                                   event_.legacy->tid.value_or(sequence.tid));
    }
    if (sequence.defaults.track) return out_.tracks.of_uuid(*sequence.defaults.track);
    if (sequence.has_thread) return out_.tracks.of_thread(sequence.pid, sequence.tid);
    return out_.tracks.of_sequence(sequence.id);
  }

  void add_mark(Mark mark, Sequence& sequence, std::int64_t ts) {
    mark.ts = ts;
    mark.packet_bytes = packet_bytes_;
    mark.name = event_.name;
    mark.category = event_.category;
    mark.arguments = out_.arguments.keep(event_.arguments, sequence.epoch);
    if (event_.links.any()) {
      mark.links = static_cast<std::int32_t>(marks_.links.size());
      marks_.links.push_back(event_.links);
    }
    if (!event_.submits.empty() || !event_.waits.empty()) {
      mark.work = static_cast<std::int32_t>(marks_.work.size());
      Work work;
      work.sequence = sequence.id;
      work.submits = event_.submits;
      work.waits = event_.waits;
      marks_.work.push_back(std::move(work));
    }
    mark.first_flow = static_cast<std::int32_t>(marks_.flows.size());
    mark.flow_count = static_cast<std::uint32_t>(event_.flows.size());
    marks_.flows.insert(marks_.flows.end(), event_.flows.begin(), event_.flows.end());
    marks_.marks.push_back(mark);
  }

  void add_counter(std::int32_t row, const Sequence& sequence, std::int64_t ts, double value) {
    Track& track = out_.tracks[row];
    value *= track.multiplier;
    if (track.incremental) {
      if (track.clears != sequence.clears) {
        track.clears = sequence.clears;
        track.total = 0;
      }
      track.total += value;
      value = track.total;
    }
    if (track.kind == TrackKind::kCustom && !track.described) track.kind = TrackKind::kCounter;
    out_.counters.track.push_back(row);
    out_.counters.ts.push_back(ts);
    out_.counters.value.push_back(value);
  }

  // Values of further counters that came with an event, on the tracks that it or the defaults name.
  void extra_counters(const Sequence& sequence, std::int64_t ts) {
    const auto& tracks = event_.extra_tracks.empty() ? sequence.defaults.extra : event_.extra_tracks;
    for (std::size_t i = 0; i < event_.extra_values.size() && i < tracks.size() && tracks[i] != 0; ++i) {
      add_counter(out_.tracks.of_uuid(tracks[i]), sequence, ts, event_.extra_values[i]);
    }
    const auto& doubles =
        event_.extra_double_tracks.empty() ? sequence.defaults.extra_double : event_.extra_double_tracks;
    for (std::size_t i = 0; i < event_.extra_double_values.size() && i < doubles.size() && doubles[i] != 0;
         ++i) {
      add_counter(out_.tracks.of_uuid(doubles[i]), sequence, ts, event_.extra_double_values[i]);
    }
  }

  // Events as the trace-event format has them, which Chrome wraps for what track events do not cover.
  Outcome take_legacy(const Packet& packet, Sequence& sequence, std::int64_t ts) {
    const LegacyEvent& legacy = *event_.legacy;
    Mark mark;
    const auto async_track = [&] {
      const std::int64_t pid = legacy.pid.value_or(sequence.has_thread ? sequence.pid : 0);
      return out_.tracks.of_async(legacy.local ? pid : -1, legacy.scope, legacy.id, event_.name);
    };
    switch (legacy.phase) {
      case 'B':
        mark.type = Mark::Type::kBegin;
        mark.track = track_of(sequence);
        break;
      case 'E':
        mark.type = Mark::Type::kEnd;
        mark.track = track_of(sequence);
        break;
      case 'X':
        if (legacy.duration_us < 0 || legacy.duration_us > kLargestTime / 1000) {
          note(Problem::kNoTime, packet.offset);
          return Problem::kNoTime;
        }
        mark.type = Mark::Type::kComplete;
        mark.dur = legacy.duration_us * 1000;
        mark.track = track_of(sequence);
        break;
      case 'I':
      case 'i':
      case 'R':
        mark.type = Mark::Type::kInstant;
        mark.track = track_of(sequence);
        break;
      case 'b':
      case 'S':
        mark.type = Mark::Type::kBegin;
        mark.track = async_track();
        break;
      case 'e':
      case 'F':
        mark.type = Mark::Type::kEnd;
        mark.track = async_track();
        break;
      case 'n':
        mark.type = Mark::Type::kInstant;
        mark.track = async_track();
        break;
      default:
        note(Problem::kUnusedLegacyPhase, packet.offset);
        return Fate::kUnreadPhase;
    }
    add_mark(mark, sequence, ts);
    return Fate::kRead;
  }

  // Events on clocks that lead nowhere. A trace that uses one such clock and no other has a time axis all the
  // same, its own; in any other trace they have no place.
  void settle_other_clocks() {
    if (off_clock_events_.empty()) return;
    const std::uint32_t clock = off_clock_events_.front().clock;
    const bool single = on_clock_ == 0 && std::all_of(off_clock_events_.begin(), off_clock_events_.end(),
                                                      [&](const OffClock& e) { return e.clock == clock; });
    if (single) {
      out_.clock = clock;
      if (clock == clock_id::kRealtime) {
        out_.unix_offset = 0;
      } else {
        out_.unix_offset.reset();
      }
      return;
    }
    std::vector<bool> no_mark(marks_.marks.size(), false);
    std::vector<bool> no_counter(out_.counters.ts.size(), false);
    for (const OffClock& event : off_clock_events_) {
      note(Problem::kOtherClock, event.offset);
      Count& read = out_.accounting.read[event.field];
      --read.packets;
      read.bytes -= event.bytes;
      add(left_out(Problem::kOtherClock), event.bytes);
      for (std::size_t i = event.marks_begin; i < event.marks_end; ++i) no_mark[i] = true;
      for (std::size_t i = event.counters_begin; i < event.counters_end; ++i) no_counter[i] = true;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < marks_.marks.size(); ++i) {
      if (!no_mark[i]) marks_.marks[kept++] = marks_.marks[i];
    }
    marks_.marks.resize(kept);
    kept = 0;
    Counters& counters = out_.counters;
    for (std::size_t i = 0; i < counters.ts.size(); ++i) {
      if (no_counter[i]) continue;
      counters.track[kept] = counters.track[i];
      counters.ts[kept] = counters.ts[i];
      counters.value[kept++] = counters.value[i];
    }
    counters.track.resize(kept);
    counters.ts.resize(kept);
    counters.value.resize(kept);
  }

  struct OffClock {
    std::size_t marks_begin;
    std::size_t counters_begin;
    std::uint32_t clock;
    std::size_t offset;
    std::uint32_t field;
    std::uint32_t bytes;
    std::size_t marks_end = 0;
    std::size_t counters_end = 0;
  };

  Bytes bytes_;
  Trace out_;
  LinkNames names_;
  Clocks clocks_;
  IdMap<Sequence> sequences_;
  Marks marks_;
  GpuEvents gpu_;
  TrackEvent event_;
  std::uint32_t packet_bytes_ = 0;
  std::vector<OffClock> off_clock_events_;
  std::uint64_t on_clock_ = 0;
  std::size_t metadata_bytes_ = 0;
};

}  // namespace

Trace decode(Bytes trace) { return Decoder(trace).run(); }

std::vector<CompressedPackets> find_compressed(Bytes trace) {
  std::vector<CompressedPackets> out;
  Fields packets(trace);
  while (packets.next()) {
    if (packets.number() != trace_field::kPacket || packets.wire() != Wire::kLength) continue;
    const std::uint64_t begin = packets.offset();
    const std::uint64_t end = begin + packets.encoded().size();
    Fields fields(packets.bytes());
    while (fields.next()) {
      const bool zstd = fields.number() == packet_field::kZstdCompressed;
      if (!zstd && fields.number() != packet_field::kCompressed) continue;
      if (fields.wire() != Wire::kLength) continue;
      out.push_back({begin, end, static_cast<std::uint64_t>(fields.bytes().data() - trace.data()),
                     fields.bytes().size(), zstd});
      break;
    }
  }
  return out;
}

}  // namespace torchtrt_viz::perfetto
