// Protocol buffers' wire format, read with every bound checked.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace torchtrt_viz::protobuf {

using Bytes = std::span<const std::uint8_t>;

enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// Reads a varint at `at`; on success moves `at` behind it. More than ten bytes, or a cut one, is damage.
inline bool read_varint(const std::uint8_t*& at, const std::uint8_t* end, std::uint64_t& value) noexcept {
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
    const std::uint8_t byte = *at++;
    if (shift < 64) result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      value = result;
      return true;
    }
  }
  return false;
}

// The fields of one message, one after the other.
class Fields {
 public:
  explicit Fields(Bytes message) noexcept
      : begin_(message.data()), at_(message.data()), end_(message.data() + message.size()) {}

  // Moves to the next field; false at the end of the message and at damage.
  bool next() noexcept {
    field_begin_ = at_;
    if (at_ >= end_ || damaged_) return false;
    std::uint64_t tag = 0;
    if (!read_varint(at_, end_, tag) || tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF) return damage();
    number_ = static_cast<std::uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0:
        wire_ = Wire::kVarint;
        return read_varint(at_, end_, value_) || damage();
      case 1:
        wire_ = Wire::kFixed64;
        return fixed<std::uint64_t>();
      case 2: {
        wire_ = Wire::kLength;
        std::uint64_t size = 0;
        if (!read_varint(at_, end_, size)) return damage();
        if (size > static_cast<std::uint64_t>(end_ - at_)) {
          bytes_ = {at_, end_};
          cut_ = true;
          return damage();
        }
        bytes_ = {at_, static_cast<std::size_t>(size)};
        at_ += size;
        return true;
      }
      case 5:
        wire_ = Wire::kFixed32;
        return fixed<std::uint32_t>();
      default:  // groups are not used in this format
        return damage();
    }
  }

  [[nodiscard]] bool damaged() const noexcept { return damaged_; }
  // Whether the message ends inside of the length-delimited field at which it is damaged: number() and
  // bytes() are those of what there is of it.
  [[nodiscard]] bool cut() const noexcept { return cut_; }
  [[nodiscard]] std::size_t offset() const noexcept {
    return static_cast<std::size_t>(field_begin_ - begin_);
  }

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] Wire wire() const noexcept { return wire_; }
  // Value of a varint or fixed field; 0 for a length-delimited one, which a writer of another mind may send.
  [[nodiscard]] std::uint64_t value() const noexcept { return wire_ == Wire::kLength ? 0 : value_; }
  [[nodiscard]] std::int64_t signed_value() const noexcept { return static_cast<std::int64_t>(value()); }
  [[nodiscard]] double real() const noexcept {
    if (wire_ == Wire::kFixed64) return std::bit_cast<double>(value_);
    if (wire_ == Wire::kFixed32)
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value_)));
    return 0;
  }
  // Content of a length-delimited field, empty for any other.
  [[nodiscard]] Bytes bytes() const noexcept { return wire_ == Wire::kLength ? bytes_ : Bytes(); }
  [[nodiscard]] std::string_view text() const noexcept {
    const Bytes content = bytes();
    return {reinterpret_cast<const char*>(content.data()), content.size()};
  }
  // The whole field, tag included.
  [[nodiscard]] Bytes encoded() const noexcept {
    return {field_begin_, static_cast<std::size_t>(at_ - field_begin_)};
  }

  // Calls `take` with each number of a repeated field, packed or not.
  template <typename Take>
  void each(Take&& take) const {
    if (wire_ != Wire::kLength) {
      take(value_);
      return;
    }
    const std::uint8_t* at = bytes_.data();
    const std::uint8_t* const end = at + bytes_.size();
    std::uint64_t value = 0;
    while (at < end && read_varint(at, end, value)) take(value);
  }
  // The same for fixed64 and double.
  template <typename Take>
  void each_fixed64(Take&& take) const {
    if (wire_ != Wire::kLength) {
      take(value_);
      return;
    }
    for (std::size_t at = 0; at + 8 <= bytes_.size(); at += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, bytes_.data() + at, 8);
      take(value);
    }
  }

 private:
  bool damage() noexcept {
    damaged_ = true;
    return false;
  }
  template <typename T>
  bool fixed() noexcept {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) return damage();
    T value = 0;
    std::memcpy(&value, at_, sizeof(T));  // the format and every supported host are little-endian
    at_ += sizeof(T);
    value_ = value;
    return true;
  }

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  const std::uint8_t* field_begin_ = nullptr;
  std::uint64_t value_ = 0;
  Bytes bytes_;
  std::uint32_t number_ = 0;
  Wire wire_ = Wire::kVarint;
  bool damaged_ = false;
  bool cut_ = false;
};

static_assert(std::endian::native == std::endian::little);

}  // namespace torchtrt_viz::protobuf
