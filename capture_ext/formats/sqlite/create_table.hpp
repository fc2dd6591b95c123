// The columns of a table, out of the CREATE TABLE statement that the database keeps of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace torchtrt_viz::sqlite {

struct ColumnDefinition {
  std::string name;
  std::string type;          // as declared, words joined by a blank; may be empty
  bool stored = true;        // a virtual generated column has no value in the rows
  bool has_default = false;  // rows that were written before the column was added take it
};

struct TableDefinition {
  std::vector<ColumnDefinition> columns;
  int rowid_column = -1;  // whose value is the row's own number
  bool without_rowid = false;
};

// None for a statement that does not read as one.
std::optional<TableDefinition> parse_create_table(std::string_view sql);

}  // namespace torchtrt_viz::sqlite
