// Numbers as SQLite stores them: big-endian, and of variable length. Nothing reads outside its span.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace torchtrt_viz::sqlite {

using Bytes = std::span<const std::uint8_t>;

inline std::uint16_t be16(const std::uint8_t* p) { return static_cast<std::uint16_t>(p[0] << 8 | p[1]); }

inline std::uint32_t be32(const std::uint8_t* p) {
  return static_cast<std::uint32_t>(p[0]) << 24 | static_cast<std::uint32_t>(p[1]) << 16 |
         static_cast<std::uint32_t>(p[2]) << 8 | static_cast<std::uint32_t>(p[3]);
}

inline std::uint64_t be64(const std::uint8_t* p) {
  return static_cast<std::uint64_t>(be32(p)) << 32 | be32(p + 4);
}

// A signed integer of as many bytes as SQLite has them: 1, 2, 3, 4, 6 or 8.
inline std::int64_t signed_be(const std::uint8_t* p, std::size_t size) {
  switch (size) {
    case 1:
      return static_cast<std::int8_t>(p[0]);
    case 2:
      return static_cast<std::int16_t>(be16(p));
    case 3:
      return static_cast<std::int64_t>(static_cast<std::int8_t>(p[0])) * 0x10000 + be16(p + 1);
    case 4:
      return static_cast<std::int32_t>(be32(p));
    case 6:
      return static_cast<std::int64_t>(static_cast<std::int16_t>(be16(p))) * 0x100000000 + be32(p + 2);
    default:
      return static_cast<std::int64_t>(be64(p));
  }
}

// Reads numbers of 1 to 9 bytes, one after the other; `failed` once one does not fit.
class Varints {
 public:
  explicit Varints(Bytes bytes) : at_(bytes.data()), begin_(at_), end_(at_ + bytes.size()) {}

  std::uint64_t next() {
    if (at_ < end_ && *at_ < 0x80) [[likely]]
      return *at_++;
    return longer();
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t read() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  std::uint64_t longer() {
    std::uint64_t value = 0;
    for (int i = 0; i < 9; ++i) {
      if (at_ == end_) break;
      const std::uint8_t byte = *at_++;
      if (i == 8) return value << 8 | byte;
      value = value << 7 | (byte & 0x7FU);
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }

  const std::uint8_t* at_;
  const std::uint8_t* begin_;
  const std::uint8_t* end_;
  bool failed_ = false;
};

}  // namespace torchtrt_viz::sqlite
