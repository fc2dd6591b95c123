// Strings as small numbers: each distinct byte string gets the next code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace torchtrt_viz {

class Interner {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  Interner();

  // The code of `text`, a new one when it was not seen before.
  std::uint32_t code(std::string_view text);

  [[nodiscard]] std::string_view text(std::uint32_t code) const {
    const Entry& entry = entries_[code];
    return {arena_.data() + entry.offset, entry.size};
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }

 private:
  struct Entry {
    std::uint64_t hash;
    std::size_t offset;
    std::uint32_t size;
  };

  [[nodiscard]] std::uint64_t hash(std::string_view text) const;
  std::uint32_t add(std::string_view text, std::uint64_t hash, std::size_t slot);
  void grow();

  std::uint64_t seed_;  // differs between processes, so that no file can be made to collide
  std::vector<std::uint32_t> slots_;
  std::size_t mask_;
  std::vector<Entry> entries_;
  std::string arena_;
};

}  // namespace torchtrt_viz
