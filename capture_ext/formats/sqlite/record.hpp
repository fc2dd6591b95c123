// The values of a row, of the columns that are wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/sqlite/bytes.hpp"
#include "formats/sqlite/damage.hpp"
#include "formats/sqlite/tree.hpp"

namespace torchtrt_viz::sqlite {

// SQLite gives every value of a column a type of its own.
enum class Type : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };

struct Value {
  Type type = Type::kNull;
  std::int64_t integer = 0;
  double real = 0;
  Bytes bytes;  // of a text or blob, valid until the next row
};

// Numbers that say what a value is and how long.
constexpr std::uint64_t kNullSerial = 0, kRealSerial = 7, kZeroSerial = 8, kOneSerial = 9,
                        kFirstBytesSerial = 12;

class Records {
 public:
  // `wanted`: positions within the record, rising.
  Records(const Storage& storage, const Layout& layout, std::vector<std::size_t> wanted)
      : overflow_(storage, layout), wanted_(std::move(wanted)), places_(wanted_.size()) {}

  // Reads a row. False for one whose parts do not fit, which depends on the row alone and not on what is
  // wanted.
  bool read(const Cell& cell, Damages& damages);

  // Of the row that was read, by position among the wanted:
  [[nodiscard]] bool recorded(std::size_t i) const { return i < found_; }  // else the column came later
  [[nodiscard]] Type type(std::size_t i) const;
  [[nodiscard]] Value value(std::size_t i) const;
  // Sets the number where the value is a whole one.
  bool integer(std::size_t i, std::int64_t& out) const {
    const Place& at = places_[i];
    if (i >= found_ || at.serial == kNullSerial || at.serial == kRealSerial ||
        at.serial >= kFirstBytesSerial || at.end > record_.size()) {
      return false;
    }
    out = at.serial >= kZeroSerial ? static_cast<std::int64_t>(at.serial - kZeroSerial)
                                   : signed_be(&record_[at.begin], at.end - at.begin);
    return true;
  }

 private:
  struct Place {
    std::uint64_t serial = 0, begin = 0, end = 0;
  };
  bool place(Bytes header, std::size_t header_size, const Cell& cell);

  Overflow overflow_;
  std::vector<std::size_t> wanted_;
  std::vector<Place> places_;
  Bytes record_;
  std::size_t found_ = 0;
};

}  // namespace torchtrt_viz::sqlite
