// Numbers for composite keys: each distinct key gets the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/io/hashing.hpp"

namespace torchtrt_viz::kineto {

struct Key {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  bool operator==(const Key&) const = default;
};

class KeyIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  KeyIndex() : slots_(64, 0), mask_(63) {}

  [[nodiscard]] std::uint32_t find(const Key& key) const {
    for (std::size_t slot = hash(key) & mask_;; slot = (slot + 1) & mask_) {
      const std::uint32_t found = slots_[slot];
      if (found == 0) return kNone;
      if (keys_[found - 1] == key) return found - 1;
    }
  }

  std::uint32_t insert(const Key& key) {
    std::size_t slot = hash(key) & mask_;
    for (;; slot = (slot + 1) & mask_) {
      const std::uint32_t found = slots_[slot];
      if (found == 0) break;
      if (keys_[found - 1] == key) return found - 1;
    }
    keys_.push_back(key);
    slots_[slot] = size();
    if (keys_.size() * 2 > mask_) grow();
    return size() - 1;
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(keys_.size()); }

 private:
  [[nodiscard]] std::uint64_t hash(const Key& key) const { return mix(key.first ^ seed_, key.second); }

  void grow() {
    mask_ = mask_ * 2 + 1;
    slots_.assign(mask_ + 1, 0);
    for (std::uint32_t i = 0; i < size(); ++i) {
      std::size_t slot = hash(keys_[i]) & mask_;
      while (slots_[slot] != 0) slot = (slot + 1) & mask_;
      slots_[slot] = i + 1;
    }
  }

  std::uint64_t seed_ = process_seed();
  std::vector<std::uint32_t> slots_;
  std::size_t mask_;
  std::vector<Key> keys_;
};

}  // namespace torchtrt_viz::kineto
