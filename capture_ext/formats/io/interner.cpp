#include "formats/io/interner.hpp"

#include <cstring>

#include "core/error.hpp"
#include "formats/io/hashing.hpp"

namespace torchtrt_viz {
namespace {

std::uint64_t load8(const char* p) {
  std::uint64_t value = 0;
  std::memcpy(&value, p, 8);
  return value;
}

std::uint64_t load4(const char* p) {
  std::uint32_t value = 0;
  std::memcpy(&value, p, 4);
  return value;
}

}  // namespace

Interner::Interner() : seed_(process_seed()), slots_(1U << 10, 0), mask_((1U << 10) - 1) {}

// Never reads outside the text: short ends are covered by two loads that overlap.
std::uint64_t Interner::hash(std::string_view text) const {
  const char* p = text.data();
  std::size_t n = text.size();
  std::uint64_t state = seed_ ^ n;
  if (n < 8) {
    std::uint64_t word = 0;
    if (n >= 4) {
      word = load4(p) | (load4(p + n - 4) << 32);
    } else if (n > 0) {
      const auto at = [p](std::size_t i) {
        return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i]));
      };
      word = at(0) | (at(n / 2) << 8) | (at(n - 1) << 16);
    }
    return mix(state ^ word, seed_);
  }
  const char* const last = p + n - 8;
  while (n > 16) {
    state = mix(state ^ load8(p), load8(p + 8));
    p += 16;
    n -= 16;
  }
  if (n > 8) state = mix(state ^ load8(p), seed_);
  return mix(state ^ load8(last), n);
}

std::uint32_t Interner::code(std::string_view text) {
  const std::uint64_t h = hash(text);
  std::size_t slot = h & mask_;
  for (;; slot = (slot + 1) & mask_) {
    const std::uint32_t found = slots_[slot];
    if (found == 0) return add(text, h, slot);
    const Entry& entry = entries_[found - 1];
    if (entry.hash == h && entry.size == text.size() &&
        (entry.size == 0 || std::memcmp(arena_.data() + entry.offset, text.data(), entry.size) == 0)) {
      return found - 1;
    }
  }
}

std::uint32_t Interner::add(std::string_view text, std::uint64_t h, std::size_t slot) {
  if (text.size() > kNone || entries_.size() >= kNone - 1)
    throw Error(Code::not_supported, "too many distinct strings");
  entries_.push_back({h, arena_.size(), static_cast<std::uint32_t>(text.size())});
  arena_.append(text);
  slots_[slot] = size();
  if (entries_.size() * 2 > mask_) grow();
  return size() - 1;
}

void Interner::grow() {
  mask_ = mask_ * 2 + 1;
  slots_.assign(mask_ + 1, 0);
  for (std::uint32_t i = 0; i < size(); ++i) {
    std::size_t slot = entries_[i].hash & mask_;
    while (slots_[slot] != 0) slot = (slot + 1) & mask_;
    slots_[slot] = i + 1;
  }
}

}  // namespace torchtrt_viz
