#include "formats/perfetto/track_event.hpp"

#include <limits>
#include <string>

#include "formats/perfetto/fields.hpp"

namespace torchtrt_viz::perfetto {
namespace {

// Joined categories of one event; a small message may refer to long strings many times.
constexpr std::size_t kLongestCategories = 4096;

std::int32_t look_up(const IdMap<std::int32_t>& table, std::uint64_t iid, std::uint32_t& missing) {
  const auto found = table.find(iid);
  if (found != table.end()) return found->second;
  ++missing;
  return kNone;
}

LegacyEvent read_legacy(Bytes message, const Interned* interned, Strings& strings, std::int32_t& name,
                        std::uint32_t& missing) {
  LegacyEvent legacy;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case legacy_field::kNameIid:
        if (name == kNone && interned != nullptr) name = look_up(interned->names, fields.value(), missing);
        break;
      case legacy_field::kPhase:
        legacy.phase = static_cast<char>(fields.value());
        break;
      case legacy_field::kDurationUs:
        legacy.duration_us = fields.signed_value();
        break;
      case legacy_field::kUnscopedId:
      case legacy_field::kGlobalId:
        legacy.has_id = true;
        legacy.id = fields.value();
        break;
      case legacy_field::kLocalId:
        legacy.has_id = true;
        legacy.local = true;
        legacy.id = fields.value();
        break;
      case legacy_field::kBindId:
        legacy.binds = true;
        break;
      case legacy_field::kIdScope:
        legacy.scope = strings.code(fields.text());
        break;
      case legacy_field::kPid:
        legacy.pid = static_cast<std::int32_t>(fields.value());
        break;
      case legacy_field::kTid:
        legacy.tid = static_cast<std::int32_t>(fields.value());
        break;
      default:
        break;
    }
  }
  return legacy;
}

// Takes the value of an annotation whose name is one of the links.
void read_link(Bytes message, const Interned* interned, const LinkNames& names, Strings& strings,
               Links& links) {
  std::int32_t name = kNone;
  std::optional<std::int64_t> number;
  std::int32_t text = kNone;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case annotation_field::kNameIid:
        if (interned != nullptr) {
          const auto found = interned->annotation_names.find(fields.value());
          if (found != interned->annotation_names.end()) name = found->second;
        }
        break;
      case annotation_field::kName:
        name = strings.code(fields.text());
        break;
      case annotation_field::kUint:
      case annotation_field::kInt:
        number = fields.signed_value();
        break;
      case annotation_field::kString:
        // only this one link is a text: other values are not worth an entry in the table
        if (name == names.run) text = strings.code(fields.text());
        break;
      case annotation_field::kStringIid:
        if (interned != nullptr && name == names.run) {
          const auto found = interned->annotation_strings.find(fields.value());
          if (found != interned->annotation_strings.end()) text = found->second;
        }
        break;
      default:
        break;
    }
  }
  if (name == kNone) return;
  if (name == names.run && text != kNone) links.run = text;
  if (!number) return;
  if (name == names.correlation) links.correlation = *number;
  if (name == names.corr_id) links.corr_id = *number;
  if (name == names.external_id || name == names.external_id_kineto) links.external_id = *number;
  if (name == names.iteration && *number >= 0 && *number <= std::numeric_limits<std::int32_t>::max()) {
    links.iteration = static_cast<std::int32_t>(*number);
  }
}

}  // namespace

LinkNames::LinkNames(Strings& strings)
    : correlation(strings.code("correlation")),
      external_id(strings.code("external_id")),
      external_id_kineto(strings.code("External id")),
      corr_id(strings.code("corr_id")),
      iteration(strings.code("iteration")),
      run(strings.code("run_id")) {}

void TrackEvent::clear() {
  type = 0;
  track.reset();
  name = category = kNone;
  delta_us.reset();
  absolute_us.reset();
  value.reset();
  extra_values.clear();
  extra_double_values.clear();
  extra_tracks.clear();
  extra_double_tracks.clear();
  flows.clear();
  arguments.clear();
  submits.clear();
  waits.clear();
  legacy.reset();
  links = {};
  missing_names = 0;
}

bool read_track_event(Bytes message, const Interned* interned, const LinkNames& names, Strings& strings,
                      TrackEvent& event) {
  event.clear();
  std::string joined;
  std::int32_t single_category = kNone;
  std::size_t categories = 0;
  const auto add_category = [&](std::int32_t code) {
    if (code == kNone) return;
    const std::string_view text = strings.text(code);
    if (categories++ == 0) {
      single_category = code;
    } else {
      if (categories == 2) joined.assign(strings.text(single_category));
      if (joined.size() + text.size() < kLongestCategories) joined.append(",").append(text);
    }
  };
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case event_field::kType:
        event.type = fields.value();
        break;
      case event_field::kNameIid:
        if (interned != nullptr) {
          event.name = look_up(interned->names, fields.value(), event.missing_names);
        } else {
          ++event.missing_names;
        }
        break;
      case event_field::kName:
        event.name = strings.code(fields.text());
        break;
      case event_field::kCategoryIids:
        fields.each([&](std::uint64_t iid) {
          if (interned != nullptr) {
            add_category(look_up(interned->categories, iid, event.missing_names));
          } else {
            ++event.missing_names;
          }
        });
        break;
      case event_field::kCategories:
        add_category(strings.code(fields.text()));
        break;
      case event_field::kTrackUuid:
        event.track = fields.value();
        break;
      case event_field::kTimeDeltaUs:
        event.delta_us = fields.signed_value();
        break;
      case event_field::kTimeAbsoluteUs:
        event.absolute_us = fields.signed_value();
        break;
      case event_field::kCounterValue:
        event.value = static_cast<double>(fields.signed_value());
        break;
      case event_field::kDoubleCounterValue:
        event.value = fields.real();
        break;
      case event_field::kExtraValues:
        fields.each([&](std::uint64_t value) {
          event.extra_values.push_back(static_cast<double>(static_cast<std::int64_t>(value)));
        });
        break;
      case event_field::kExtraDoubleValues:
        fields.each_fixed64(
            [&](std::uint64_t value) { event.extra_double_values.push_back(std::bit_cast<double>(value)); });
        break;
      case event_field::kExtraUuids:
        fields.each([&](std::uint64_t uuid) { event.extra_tracks.push_back(uuid); });
        break;
      case event_field::kExtraDoubleUuids:
        fields.each([&](std::uint64_t uuid) { event.extra_double_tracks.push_back(uuid); });
        break;
      case event_field::kFlowIdsOld:
        fields.each([&](std::uint64_t id) { event.flows.push_back({id, false}); });
        break;
      case event_field::kTerminatingOld:
        fields.each([&](std::uint64_t id) { event.flows.push_back({id, true}); });
        break;
      case event_field::kFlowIds:
        fields.each_fixed64([&](std::uint64_t id) { event.flows.push_back({id, false}); });
        break;
      case event_field::kTerminatingFlowIds:
        fields.each_fixed64([&](std::uint64_t id) { event.flows.push_back({id, true}); });
        break;
      case event_field::kDebugAnnotations:
        event.arguments.push_back(fields.encoded());
        read_link(fields.bytes(), interned, names, strings, event.links);
        break;
      case event_field::kCorrelationId:
        event.links.correlation = fields.signed_value();
        event.arguments.push_back(fields.encoded());
        break;
      case event_field::kTaskExecution:
      case event_field::kLogMessage:
      case event_field::kSourceLocation:
      case event_field::kSourceLocationIid:
      case event_field::kCorrelationText:
      case event_field::kCorrelationTextIid:
        event.arguments.push_back(fields.encoded());
        break;
      case event_field::kGpuCorrelation: {
        Fields work(fields.bytes());
        while (work.next()) {
          if (work.number() != 1 && work.number() != 2) continue;
          auto& ids = work.number() == 1 ? event.submits : event.waits;
          work.each([&](std::uint64_t id) { ids.push_back(id); });
        }
        break;
      }
      case event_field::kLegacy:
        event.legacy = read_legacy(fields.bytes(), interned, strings, event.name, event.missing_names);
        break;
      default:
        break;
    }
  }
  event.category = categories > 1 ? strings.code(joined) : single_category;
  return !fields.damaged();
}

}  // namespace torchtrt_viz::perfetto
