#include "formats/perfetto/sequence.hpp"

#include <random>

#include "formats/perfetto/fields.hpp"

namespace torchtrt_viz::perfetto {
namespace {

// Reads a message {iid = 1, text = 2}; false when it is damaged.
bool read_entry(Bytes message, std::uint64_t& iid, std::string_view& text) {
  Fields fields(message);
  iid = 0;
  text = {};
  while (fields.next()) {
    if (fields.number() == 1) iid = fields.value();
    if (fields.number() == 2) text = fields.text();
  }
  return !fields.damaged();
}

}  // namespace

std::size_t IdHash::operator()(std::uint64_t id) const noexcept {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }();
  const auto product = static_cast<unsigned __int128>(id ^ seed) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(static_cast<std::uint64_t>(product) ^
                                  static_cast<std::uint64_t>(product >> 64));
}

SourceLocation read_location(Bytes message, Strings& strings, std::uint64_t* iid) {
  SourceLocation location;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        if (iid != nullptr) *iid = fields.value();
        break;
      case 2:
        location.file = strings.code(fields.text());
        break;
      case 3:
        location.function = strings.code(fields.text());
        break;
      case 4:
        location.line = static_cast<std::uint32_t>(fields.value());
        break;
      default:
        break;
    }
  }
  return location;
}

bool Interned::add(Bytes data, Strings& strings) {
  Fields fields(data);
  bool whole = true;
  while (fields.next()) {
    IdMap<std::int32_t>* table = nullptr;
    switch (fields.number()) {
      case interned_field::kCategories:
        table = &categories;
        break;
      case interned_field::kNames:
        table = &names;
        break;
      case interned_field::kAnnotationNames:
        table = &annotation_names;
        break;
      case interned_field::kAnnotationStrings:
        table = &annotation_strings;
        break;
      case interned_field::kLogBodies:
        table = &log_bodies;
        break;
      case interned_field::kCorrelationTexts:
        table = &correlation_texts;
        break;
      case interned_field::kSourceLocations: {
        std::uint64_t iid = 0;
        const SourceLocation location = read_location(fields.bytes(), strings, &iid);
        locations[iid] = location;
        continue;
      }
      default:
        continue;
    }
    std::uint64_t iid = 0;
    std::string_view text;
    if (read_entry(fields.bytes(), iid, text)) {
      (*table)[iid] = strings.code(text);
    } else {
      whole = false;
    }
  }
  return whole && !fields.damaged();
}

void Sequence::clear_state() {
  state_valid = true;
  epoch = kNoEpoch;
  ++clears;
  defaults = {};
  gpu = {};
}

Defaults read_defaults(Bytes message) {
  Defaults defaults;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == defaults_field::kClockId) {
      defaults.clock = static_cast<std::uint32_t>(fields.value());
    } else if (fields.number() == defaults_field::kTrackEvent) {
      Fields event(fields.bytes());
      while (event.next()) {
        switch (event.number()) {
          case event_field::kTrackUuid:
            defaults.track = event.value();
            break;
          case event_field::kExtraUuids:
            event.each([&](std::uint64_t uuid) { defaults.extra.push_back(uuid); });
            break;
          case event_field::kExtraDoubleUuids:
            event.each([&](std::uint64_t uuid) { defaults.extra_double.push_back(uuid); });
            break;
          default:
            break;
        }
      }
    }
  }
  return defaults;
}

}  // namespace torchtrt_viz::perfetto
