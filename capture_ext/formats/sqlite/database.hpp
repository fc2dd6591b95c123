// A database as tables, and their columns as arrays.
//
// The file is read only and never executed: statements in it are looked at for the names of columns alone.
// Tables are read whole, in the order of their rows' numbers; free pages, indices and logs are not looked at.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/io/column.hpp"
#include "formats/io/interner.hpp"
#include "formats/sqlite/create_table.hpp"
#include "formats/sqlite/damage.hpp"
#include "formats/sqlite/pages.hpp"
#include "formats/sqlite/record.hpp"
#include "formats/sqlite/tree.hpp"
#include "formats/sqlite/utf16.hpp"

namespace torchtrt_viz::sqlite {

// Why nothing of a file can be read.
enum class Refusal : std::uint8_t { kNone, kShort, kMagic, kPageSize, kEncoding, kNoSchema };

struct Table {
  std::string name;
  std::string type;  // "table", "view", "index", "trigger"
  std::uint32_t root = 0;
  std::optional<TableDefinition> definition;  // of tables that hold rows and whose definition reads as one

  [[nodiscard]] bool readable() const { return definition && !definition->without_rowid && root != 0; }
};

// What a column is wanted as. Values of other types are missing, and counted.
enum class Kind : std::uint8_t {
  kInteger,
  kReal,  // whole numbers too
  kText,
  kAny,  // the type of each value, and the value in 64 bits: of reals the bits, of texts and blobs a code
};

struct Request {
  std::size_t column = 0;
  Kind kind = Kind::kAny;
  // A text is cut before the first of these, so that those that differ behind it are one.
  std::vector<std::string> cuts;
};

struct ColumnValues {
  Kind kind = Kind::kAny;
  Column<std::int64_t> integers;  // kInteger, kAny
  Column<double> reals;           // NaN where missing
  Column<std::int32_t> codes;     // of `texts`, -1 where missing
  Column<std::uint8_t> types;     // kAny
  Column<std::uint8_t> missing;   // kInteger; empty: none is
  Column<std::uint8_t> cut;       // kText with cuts: whether the text was cut
  Interner texts;
  std::uint64_t misfits = 0;  // values of another type
};

struct Rows {
  std::uint64_t count = 0;
  std::uint64_t lost = 0;  // rows that are damaged
  std::vector<ColumnValues> columns;
  Damages damages;
};

class Database {
 public:
  explicit Database(std::unique_ptr<Storage> storage);

  [[nodiscard]] Refusal refusal() const { return refusal_; }
  [[nodiscard]] std::uint64_t size() const { return storage_->size(); }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] std::uint64_t stated_pages() const { return stated_pages_; }  // 0: not stated
  [[nodiscard]] Encoding encoding() const { return encoding_; }
  [[nodiscard]] bool logged() const { return logged_; }  // changes may lie in a write-ahead log beside it
  [[nodiscard]] const std::vector<Table>& tables() const { return tables_; }
  [[nodiscard]] const Damages& damages() const { return damages_; }  // of the list of tables

  // Every row of a table.
  Rows read(std::size_t table, std::span<const Request> requests);
  // Some rows by their position (rising, none twice); reads the pages of those rows alone. One that is not
  // there has no values.
  Rows pick(std::size_t table, std::span<const Request> requests, std::span<const std::int64_t> positions);

 private:
  // Where the rows of a table begin, by leaf: pages and positions of their first rows.
  struct Directory {
    std::vector<std::uint32_t> page;
    std::vector<std::uint64_t> first;
    std::uint64_t rows = 0;
  };
  class Reading;

  void read_header();
  void read_schema();
  Rows read_all(const Table& table, std::span<const Request> requests, Directory* directory);
  const Table& readable(std::size_t table) const;

  std::unique_ptr<Storage> storage_;
  Refusal refusal_ = Refusal::kNone;
  Layout layout_;
  std::uint64_t stated_pages_ = 0;
  Encoding encoding_ = Encoding::kUtf8;
  bool logged_ = false;
  std::vector<Table> tables_;
  Damages damages_;
  std::mutex mutex_;
  std::map<std::size_t, Directory> directories_;
};

}  // namespace torchtrt_viz::sqlite
