#include "formats/xplane/decoder.hpp"

#include <bit>
#include <string_view>

#include "formats/xplane/ids.hpp"

namespace torchtrt_viz::xplane {

namespace {

using protobuf::Bytes;
using protobuf::Fields;

// Numbers of the fields, after xplane.proto.
namespace space_field {
constexpr std::uint32_t kPlane = 1, kError = 2, kWarning = 3, kHost = 4;
}
namespace plane_field {
constexpr std::uint32_t kId = 1, kName = 2, kLine = 3, kEventMetadata = 4, kStatMetadata = 5, kStat = 6;
}
namespace line_field {
constexpr std::uint32_t kId = 1, kName = 2, kTimestamp = 3, kEvent = 4, kDisplayId = 10, kDisplayName = 11;
}
namespace event_field {
constexpr std::uint32_t kMetadataId = 1, kOffset = 2, kDuration = 3, kStat = 4, kOccurrences = 5;
}
namespace stat_field {
constexpr std::uint32_t kMetadataId = 1, kDouble = 2, kUnsigned = 3, kSigned = 4, kText = 5, kBytes = 6,
                        kRef = 7;
}
namespace entry_field {
constexpr std::uint32_t kKey = 1, kValue = 2;
}
namespace metadata_field {
constexpr std::uint32_t kName = 2, kBytes = 3, kDisplayName = 4, kStat = 5;
}

constexpr std::size_t kMostTexts = 1000;

struct Stat {
  std::int64_t metadata_id = 0;
  Type type = Type::kNone;
  std::int64_t value = 0;
  std::string_view text;
  bool ref = false;
};

// Reads one statistic; false when it is damaged.
bool read_stat(Bytes content, Stat& stat) {
  Fields fields(content);
  while (fields.next()) {
    switch (fields.number()) {
      case stat_field::kMetadataId:
        stat.metadata_id = fields.signed_value();
        break;
      case stat_field::kDouble:
        stat.type = Type::kReal;
        stat.ref = false;
        stat.value = std::bit_cast<std::int64_t>(fields.real());
        break;
      case stat_field::kUnsigned:
      case stat_field::kSigned:
        stat.type = fields.number() == stat_field::kSigned ? Type::kSigned : Type::kUnsigned;
        stat.ref = false;
        stat.value = fields.signed_value();
        break;
      case stat_field::kText:
        stat.type = Type::kText;
        stat.ref = false;
        stat.text = fields.text();
        break;
      case stat_field::kBytes:
        stat.type = Type::kBytes;
        stat.ref = false;
        stat.value = static_cast<std::int64_t>(fields.bytes().size());
        break;
      case stat_field::kRef:
        stat.type = Type::kText;
        stat.ref = true;
        stat.value = fields.signed_value();
        break;
      default:
        break;
    }
  }
  return !fields.damaged();
}

class Reader {
 public:
  explicit Reader(Bytes data) : data_(data) { space_.bytes = data.size(); }

  Space read() {
    Fields fields(data_);
    while (fields.next()) {
      switch (fields.number()) {
        case space_field::kPlane:
          plane(fields.bytes());
          break;
        case space_field::kError:
          keep(space_.errors, fields.text());
          break;
        case space_field::kWarning:
          keep(space_.warnings, fields.text());
          break;
        case space_field::kHost:
          keep(space_.hosts, fields.text());
          break;
        default:
          break;
      }
    }
    if (fields.damaged()) {
      problem(Problem::kTruncated, data_.data() + fields.offset());
      if (fields.cut() && fields.number() == space_field::kPlane) {
        plane(fields.bytes());
      } else {
        space_.lost_bytes += data_.size() - fields.offset();
      }
    }
    space_.lines.event_begin.push(static_cast<std::int64_t>(space_.events.kind.size()));
    end(space_.planes.stats);
    end(space_.kinds.stats);
    end(space_.events.stats);
    return std::move(space_);
  }

 private:
  void problem(Problem what, const std::uint8_t* at) {
    Tally& tally = space_.problems[static_cast<std::size_t>(what)];
    if (tally.count++ == 0) tally.offset = static_cast<std::size_t>(at - data_.data());
  }
  static void keep(std::vector<std::string>& texts, std::string_view text) {
    if (texts.size() < kMostTexts) texts.emplace_back(text);
  }
  static void begin(Stats& stats) { stats.begin.push(static_cast<std::int64_t>(stats.name.size())); }
  static void end(Stats& stats) { begin(stats); }

  void add(Stats& stats, Bytes content) {
    Stat stat;
    if (!read_stat(content, stat)) {
      problem(Problem::kDamagedStat, content.data());
      return;
    }
    std::int64_t value = stat.value;
    if (stat.type == Type::kText) {
      const std::uint32_t code = stat.ref ? stat_ids_.find(value) : space_.strings.code(stat.text);
      if (code == Ids::kNone) return;  // refers to a text that is not there
      value = code;
    }
    stats.name.push(stat_ids_.find(stat.metadata_id));
    stats.type.push(static_cast<std::uint8_t>(stat.type));
    stats.value.push(value);
  }

  // Notes a message that does not read to its end; whether the caller should go on with what there is of its
  // last field.
  bool short_of(const Fields& fields, Bytes message) {
    if (!fields.damaged()) return false;
    if (fields.cut()) return true;
    problem(Problem::kDamagedPlane, message.data() + fields.offset());
    space_.lost_bytes += message.size() - fields.offset();
    return false;
  }

  void plane(Bytes content) {
    space_.plane_bytes += content.size();
    const auto row = static_cast<std::uint32_t>(space_.planes.id.size());
    stat_ids_ = Ids();
    event_ids_ = Ids();
    std::int64_t id = 0;
    std::string_view name;
    // Descriptions stand behind the lines that use them, and statistics' names are used in those of events.
    Fields first(content);
    while (first.next()) {
      if (first.number() == plane_field::kId) id = first.signed_value();
      if (first.number() == plane_field::kName) name = first.text();
      if (first.number() == plane_field::kStatMetadata) stat_metadata(first.bytes());
    }
    stat_ids_.settle();
    space_.planes.id.push(id);
    space_.planes.name.push(space_.strings.code(name));
    begin(space_.planes.stats);
    Fields second(content);
    while (second.next()) {
      if (second.number() == plane_field::kEventMetadata) event_metadata(second.bytes(), row);
      if (second.number() == plane_field::kStat) add(space_.planes.stats, second.bytes());
    }
    event_ids_.settle();
    Fields third(content);
    while (third.next()) {
      if (third.number() == plane_field::kLine) line(third.bytes(), row);
    }
    if (short_of(third, content)) {
      if (third.number() == plane_field::kLine) {
        line(third.bytes(), row);
      } else {
        problem(Problem::kDamagedPlane, content.data() + third.offset());
        space_.lost_bytes += content.size() - third.offset();
      }
    }
  }

  void stat_metadata(Bytes entry) {
    std::int64_t key = 0;
    std::string_view name;
    Fields fields(entry);
    while (fields.next()) {
      if (fields.number() == entry_field::kKey) key = fields.signed_value();
      if (fields.number() != entry_field::kValue) continue;
      Fields value(fields.bytes());
      while (value.next()) {
        if (value.number() == metadata_field::kName) name = value.text();
      }
    }
    stat_ids_.add(key, space_.strings.code(name));
  }

  void event_metadata(Bytes entry, std::uint32_t plane) {
    Kinds& kinds = space_.kinds;
    std::int64_t key = 0, bytes = 0;
    std::string_view name, display_name;
    begin(kinds.stats);
    Fields fields(entry);
    while (fields.next()) {
      if (fields.number() == entry_field::kKey) key = fields.signed_value();
      if (fields.number() != entry_field::kValue) continue;
      Fields value(fields.bytes());
      while (value.next()) {
        if (value.number() == metadata_field::kName) name = value.text();
        if (value.number() == metadata_field::kDisplayName) display_name = value.text();
        if (value.number() == metadata_field::kBytes) bytes = static_cast<std::int64_t>(value.bytes().size());
        if (value.number() == metadata_field::kStat) add(kinds.stats, value.bytes());
      }
      if (value.damaged()) problem(Problem::kDamagedPlane, fields.bytes().data());
    }
    if (fields.damaged()) problem(Problem::kDamagedPlane, entry.data());
    event_ids_.add(key, static_cast<std::uint32_t>(kinds.id.size()));
    kinds.plane.push(plane);
    kinds.id.push(key);
    kinds.name.push(space_.strings.code(name));
    kinds.display_name.push(space_.strings.code(display_name));
    kinds.bytes.push(bytes);
  }

  void line(Bytes content, std::uint32_t plane) {
    Lines& lines = space_.lines;
    std::int64_t id = 0, display_id = 0, timestamp = 0;
    std::string_view name, display_name;
    lines.event_begin.push(static_cast<std::int64_t>(space_.events.kind.size()));
    Fields fields(content);
    while (fields.next()) {
      switch (fields.number()) {
        case line_field::kId:
          id = fields.signed_value();
          break;
        case line_field::kName:
          name = fields.text();
          break;
        case line_field::kTimestamp:
          timestamp = fields.signed_value();
          break;
        case line_field::kEvent:
          event(fields.bytes());
          break;
        case line_field::kDisplayId:
          display_id = fields.signed_value();
          break;
        case line_field::kDisplayName:
          display_name = fields.text();
          break;
        default:
          break;
      }
    }
    if (short_of(fields, content)) {
      const std::uint8_t* const at = content.data() + fields.offset();
      problem(fields.number() == line_field::kEvent ? Problem::kDamagedEvent : Problem::kDamagedPlane, at);
      space_.lost_bytes += content.size() - fields.offset();
    }
    lines.plane.push(plane);
    lines.id.push(id);
    lines.display_id.push(display_id);
    lines.timestamp_ns.push(timestamp);
    lines.name.push(space_.strings.code(name));
    lines.display_name.push(space_.strings.code(display_name));
  }

  void event(Bytes content) {
    Events& events = space_.events;
    std::int64_t kind_id = 0, at = 0, dur = 0;
    auto place = Place::kNone;
    const std::size_t stats_before = events.stats.name.size();
    Fields fields(content);
    while (fields.next()) {
      switch (fields.number()) {
        case event_field::kMetadataId:
          kind_id = fields.signed_value();
          break;
        case event_field::kOffset:
          place = Place::kOffset;
          at = fields.signed_value();
          break;
        case event_field::kDuration:
          dur = fields.signed_value();
          break;
        case event_field::kStat:
          add(events.stats, fields.bytes());
          break;
        case event_field::kOccurrences:
          place = Place::kOccurrences;
          at = fields.signed_value();
          break;
        default:
          break;
      }
    }
    if (fields.damaged()) {
      problem(Problem::kDamagedEvent, content.data());
      events.stats.name.resize(stats_before);
      events.stats.type.resize(stats_before);
      events.stats.value.resize(stats_before);
      return;
    }
    events.stats.begin.push(static_cast<std::int64_t>(stats_before));
    events.kind.push(static_cast<std::int32_t>(event_ids_.find(kind_id)));
    events.kind_id.push(kind_id);
    events.place.push(static_cast<std::uint8_t>(place));
    events.at.push(at);
    events.dur_ps.push(dur);
  }

  Bytes data_;
  Space space_;
  Ids stat_ids_, event_ids_;
};

}  // namespace

Space decode(protobuf::Bytes data) { return Reader(data).read(); }

}  // namespace torchtrt_viz::xplane
