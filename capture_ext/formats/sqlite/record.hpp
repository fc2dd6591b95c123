// The values of a row, of the columns that are wanted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/sqlite/bytes.hpp"
#include "formats/sqlite/damage.hpp"
#include "formats/sqlite/tree.hpp"

namespace torchtrt_viz::sqlite {

// SQLite gives every value of a column a type of its own.
enum class Type : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };

struct Value {
  Type type = Type::kNull;
  bool recorded = false;  // false for a column that was added to the table after the row
  std::int64_t integer = 0;
  double real = 0;
  Bytes bytes;  // of a text or blob, valid until the next row
};

class Records {
 public:
  // `wanted`: positions within the record, rising.
  Records(const Storage& storage, const Layout& layout, std::vector<std::size_t> wanted)
      : overflow_(storage, layout),
        wanted_(std::move(wanted)),
        values_(wanted_.size()),
        places_(wanted_.size()) {}

  // Reads a row. False for one whose parts do not fit, which depends on the row alone and not on what is
  // wanted.
  bool read(const Cell& cell, Damages& damages);
  [[nodiscard]] std::span<const Value> values() const { return values_; }

 private:
  struct Place {
    std::uint64_t serial = 0, begin = 0, end = 0;
  };
  bool place(Bytes header, std::size_t header_size, const Cell& cell);

  Overflow overflow_;
  std::vector<std::size_t> wanted_;
  std::vector<Value> values_;
  std::vector<Place> places_;
  std::size_t found_ = 0;
};

}  // namespace torchtrt_viz::sqlite
