#include "formats/etdump/dictionary.hpp"

#include <array>
#include <cstring>
#include <random>

namespace torchtrt_viz::etdump {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

// Both halves of the product of two words: every bit of the input reaches every bit of the result.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
constexpr std::size_t kFirstSlots = 256;

std::uint64_t word(const char* at, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

}  // namespace

Dictionary::Dictionary() : seed_(random_seed()), slots_(kFirstSlots, Slot{0, -1}) {}

std::uint64_t Dictionary::hash(std::string_view text) const {
  std::uint64_t state = seed_ ^ mix(text.size() ^ kOdd, seed_ | 1);
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) state = mix(state ^ word(at, 8), kOdd ^ seed_) + kOdd;
  if (left > 0) state = mix(state ^ word(at, left), kOdd ^ seed_) + kOdd;
  return mix(state, seed_ | 1);
}

void Dictionary::grow() {
  std::vector<Slot> old(slots_.size() * 2, Slot{0, -1});
  old.swap(slots_);
  const std::uint64_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.code < 0) continue;
    std::uint64_t i = slot.hash & mask;
    while (slots_[i].code >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

std::int32_t Dictionary::add(std::string_view text) {
  const std::uint64_t key = hash(text);
  const std::uint64_t mask = slots_.size() - 1;
  std::uint64_t i = key & mask;
  for (; slots_[i].code >= 0; i = (i + 1) & mask) {
    if (slots_[i].hash == key && values_[static_cast<std::size_t>(slots_[i].code)] == text) {
      return slots_[i].code;
    }
  }
  const auto code = static_cast<std::int32_t>(values_.size());
  values_.push_back(text);
  slots_[i] = {key, code};
  if (values_.size() * 2 > slots_.size()) grow();
  return code;
}

Groups group_rows(std::span<const std::span<const std::int32_t>> columns) {
  Groups out;
  if (columns.empty()) return out;
  const std::size_t rows = columns.front().size();
  const std::uint64_t seed = random_seed() | 1;
  out.code.resize(rows);
  std::vector<std::int32_t> slots(kFirstSlots, -1);
  std::vector<std::uint64_t> hashes;
  for (std::size_t row = 0; row < rows; ++row) {
    std::uint64_t key = seed;
    for (const auto& column : columns) {
      key = mix(key ^ static_cast<std::uint32_t>(column[row]), kOdd ^ seed) + kOdd;
    }
    const std::uint64_t mask = slots.size() - 1;
    std::uint64_t i = key & mask;
    for (; slots[i] >= 0; i = (i + 1) & mask) {
      const auto group = static_cast<std::size_t>(slots[i]);
      if (hashes[group] != key) continue;
      const auto other = static_cast<std::size_t>(out.first[group]);
      bool same = true;
      for (const auto& column : columns) same &= column[row] == column[other];
      if (same) break;
    }
    if (slots[i] < 0) {
      slots[i] = static_cast<std::int32_t>(out.first.size());
      out.first.push_back(static_cast<std::int64_t>(row));
      hashes.push_back(key);
    }
    out.code[row] = slots[i];
    if (out.first.size() * 2 > slots.size()) {
      std::vector<std::int32_t> wider(slots.size() * 2, -1);
      const std::uint64_t wide_mask = wider.size() - 1;
      for (std::size_t group = 0; group < hashes.size(); ++group) {
        std::uint64_t j = hashes[group] & wide_mask;
        while (wider[j] >= 0) j = (j + 1) & wide_mask;
        wider[j] = static_cast<std::int32_t>(group);
      }
      slots.swap(wider);
    }
  }
  return out;
}

}  // namespace torchtrt_viz::etdump
