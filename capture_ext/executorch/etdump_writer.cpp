#include "executorch/etdump_writer.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace torchtrt_viz::et {
namespace {

static_assert(std::endian::native == std::endian::little, "flatbuffers are little-endian");

// Tables, written front to back: every reference points forward, every table behind its vtable. All places
// follow from the counts, so nothing is moved or patched.
constexpr std::uint64_t kRootReference = 4;  // after the size prefix
constexpr std::uint64_t kVtables = 12;
constexpr std::uint16_t kRootVtable[] = {8, 8, 0, 4};  // version (default), run_data
constexpr std::uint16_t kRunVtable[] = {12, 16, 4,
                                        12, 0,  8};     // name, bundled_input_index, allocators, events
constexpr std::uint16_t kEventVtable[] = {6, 8, 4, 0};  // profile_event, and padding
constexpr std::uint64_t kRootTable = 8, kRunTable = 16, kEventTable = 8, kProfileTable = 48;

// A profile event's fields, and where they are. References that are null are absent in the table's vtable, so
// there is one vtable for each combination of them.
constexpr std::uint16_t kProfileSlots[] = {4, 8, 12, 16, 20, 24, 32, 40};
constexpr std::uint64_t kProfileVtableSize = 4 + sizeof kProfileSlots;
constexpr unsigned kHasName = 1, kHasDelegateName = 2, kHasMetadata = 4;

constexpr std::uint64_t kRunVtableAt = kVtables + sizeof kRootVtable;
constexpr std::uint64_t kEventVtableAt = kRunVtableAt + sizeof kRunVtable;
constexpr std::uint64_t kProfileVtablesAt = kEventVtableAt + sizeof kEventVtable;
constexpr std::uint64_t kRootAt = kProfileVtablesAt + 8 * kProfileVtableSize;

constexpr std::uint64_t align(std::uint64_t at, std::uint64_t to) { return (at + to - 1) / to * to; }

unsigned references(const EventColumns::Event& event) {
  return (event.name != 0 ? kHasName : 0) | (event.delegate_name != 0 ? kHasDelegateName : 0) |
         (event.metadata != 0 ? kHasMetadata : 0);
}

class Writer {
 public:
  Writer(std::string& out, std::uint64_t size) : out_(out) { out_.assign(size, '\0'); }

  template <typename T>
  void put(std::uint64_t at, T value) {
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void reference(std::uint64_t at, std::uint64_t target) { put(at, static_cast<std::uint32_t>(target - at)); }
  void table(std::uint64_t at, std::uint64_t vtable) { put(at, static_cast<std::int32_t>(at - vtable)); }
  void bytes(std::uint64_t at, const void* data, std::size_t size) {
    std::memcpy(out_.data() + at, data, size);
  }

 private:
  std::string& out_;
};

}  // namespace

std::string write_etdump(const EventColumns& columns) {
  const auto& events = columns.events;
  const auto& blocks = columns.blocks;
  const auto event_end = [&](std::size_t block) {
    return block + 1 < blocks.size() ? blocks[block + 1].first_event : events.size();
  };

  // Places.
  const auto runs_vector = kRootAt + kRootTable;
  const auto runs = runs_vector + 4 + 4 * blocks.size();
  auto at = runs + kRunTable * blocks.size();
  std::vector<std::uint64_t> event_vectors;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    event_vectors.push_back(at);
    at += 4 + 4 * (event_end(i) - blocks[i].first_event);
  }
  const auto event_tables = at;
  const auto profiles = align(event_tables + kEventTable * events.size(), 8);
  at = profiles + kProfileTable * events.size();
  // A part of a log refers to a part of its texts.
  std::vector<bool> used(columns.texts.size());
  for (const auto& block : blocks) used[block.name] = true;
  for (const auto& event : events) used[event.name] = used[event.delegate_name] = used[event.metadata] = true;
  std::vector<std::uint64_t> text_places;
  for (std::size_t i = 0; i < columns.texts.size(); ++i) {
    text_places.push_back(at);
    if (used[i])
      at += align(4 + columns.texts[i].size() + 1, 4);  // a string's NUL does no harm to a vector of bytes
  }
  const auto size = align(at, 8);
  if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(Code::not_supported, std::to_string(events.size()) +
                                         " events do not fit into one ETDump (2 GiB): take the dump more "
                                         "often and clear the session in between");
  }

  std::string out;
  Writer w(out, size);
  w.put(0, static_cast<std::uint32_t>(size - 4));
  w.reference(kRootReference, kRootAt);
  w.bytes(8, "ED00", 4);
  w.bytes(kVtables, kRootVtable, sizeof kRootVtable);
  w.bytes(kRunVtableAt, kRunVtable, sizeof kRunVtable);
  w.bytes(kEventVtableAt, kEventVtable, sizeof kEventVtable);
  for (unsigned present = 0; present < 8; ++present) {
    const auto vtable = kProfileVtablesAt + present * kProfileVtableSize;
    w.put(vtable, static_cast<std::uint16_t>(kProfileVtableSize));
    w.put(vtable + 2, static_cast<std::uint16_t>(kProfileTable));
    for (std::size_t slot = 0; slot < std::size(kProfileSlots); ++slot) {
      const bool absent = (slot == 0 && (present & kHasName) == 0) ||
                          (slot == 4 && (present & kHasDelegateName) == 0) ||
                          (slot == 5 && (present & kHasMetadata) == 0);
      w.put(vtable + 4 + 2 * slot, absent ? std::uint16_t{0} : kProfileSlots[slot]);
    }
  }

  w.table(kRootAt, kVtables);
  w.reference(kRootAt + 4, runs_vector);
  w.put(runs_vector, static_cast<std::uint32_t>(blocks.size()));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto run = runs + kRunTable * i;
    w.reference(runs_vector + 4 + 4 * i, run);
    w.table(run, kRunVtableAt);
    w.reference(run + 4, text_places[blocks[i].name]);
    w.reference(run + 8, event_vectors[i]);
    w.put(run + 12, blocks[i].bundled_input);
    const auto first = blocks[i].first_event;
    const auto count = event_end(i) - first;
    w.put(event_vectors[i], static_cast<std::uint32_t>(count));
    for (std::uint64_t e = 0; e < count; ++e) {
      w.reference(event_vectors[i] + 4 + 4 * e, event_tables + kEventTable * (first + e));
    }
  }
  for (std::size_t e = 0; e < events.size(); ++e) {
    const auto& event = events[e];
    const auto table = event_tables + kEventTable * e;
    const auto profile = profiles + kProfileTable * e;
    w.table(table, kEventVtableAt);
    w.reference(table + 4, profile);
    w.table(profile, kProfileVtablesAt + references(event) * kProfileVtableSize);
    if (event.name != 0) w.reference(profile + 4, text_places[event.name]);
    w.put(profile + 8, event.chain);
    w.put(profile + 12, event.instruction);
    w.put(profile + 16, event.delegate_int);
    if (event.delegate_name != 0) w.reference(profile + 20, text_places[event.delegate_name]);
    if (event.metadata != 0) w.reference(profile + 24, text_places[event.metadata]);
    w.put(profile + 32, event.start);
    w.put(profile + 40, event.end);
  }
  for (std::size_t i = 0; i < columns.texts.size(); ++i) {
    if (!used[i]) continue;
    const auto& text = columns.texts[i];
    w.put(text_places[i], static_cast<std::uint32_t>(text.size()));
    w.bytes(text_places[i] + 4, text.data(), text.size());
  }
  return out;
}

}  // namespace torchtrt_viz::et
