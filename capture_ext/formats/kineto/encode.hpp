// A column of strings as categories: the distinct texts in use, and small numbers.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "formats/io/column.hpp"
#include "formats/io/interner.hpp"
#include "formats/kineto/notes.hpp"

namespace torchtrt_viz::kineto {

struct Encoded {
  std::vector<std::string> categories;  // UTF-8, distinct, in the order of first use
  // The smallest type that holds them, as pandas wants it; -1 for none.
  std::variant<Column<std::int8_t>, Column<std::int16_t>, Column<std::int32_t>> codes;
};

// Takes the column, whose values are codes of `strings` (escaped text). Repairs of texts are noted at
// `places`, the byte offset of each row's event; it may be empty.
Encoded encode(Column<std::uint32_t>&& column, const Interner& strings, const Column<std::int64_t>& places,
               Notes& notes);

}  // namespace torchtrt_viz::kineto
