#include "formats/sqlite/database.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/error.hpp"

namespace torchtrt_viz::sqlite {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr std::uint32_t kLeastPage = 512, kMostPage = 65536, kLeastUsable = 480;

void push_missing(ColumnValues& column) {
  if (column.missing.empty()) column.missing.assign(column.integers.size(), 0);
  column.missing.push(1);
  column.integers.push(0);
}

void push_integer(ColumnValues& column, std::int64_t value) {
  if (!column.missing.empty()) column.missing.push(0);
  column.integers.push(value);
}

void push_real(ColumnValues& column, const Value& value) {
  if (value.type == Type::kReal) {
    column.reals.push(value.real);
  } else if (value.type == Type::kInteger) {
    column.reals.push(static_cast<double>(value.integer));
  } else {
    column.reals.push(std::numeric_limits<double>::quiet_NaN());
  }
}

// The text up to the first of the marks, which all begin with the same rare byte.
std::string_view before(std::string_view text, const std::vector<std::string>& marks) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const void* found = std::memchr(text.data() + at, marks.front().front(), text.size() - at);
    if (found == nullptr) return text;
    at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    for (const std::string& mark : marks) {
      if (text.substr(at, mark.size()) == mark) return text.substr(0, at);
    }
  }
  return text;
}

bool fits(Kind kind, Type type) {
  switch (kind) {
    case Kind::kInteger:
      return type == Type::kInteger || type == Type::kNull;
    case Kind::kReal:
      return type == Type::kInteger || type == Type::kReal || type == Type::kNull;
    case Kind::kText:
      return type == Type::kText || type == Type::kNull;
    case Kind::kAny:
      return true;
  }
  return false;
}

}  // namespace

// One pass over rows of a table, into columns.
class Database::Reading {
 public:
  Reading(const Database& database, const Table& table, std::span<const Request> requests)
      : requests_(requests.begin(), requests.end()),
        encoding_(database.encoding_),
        rowid_column_(table.definition->rowid_column) {
    // within a record the values stand in the order of the table's columns, without those that are computed
    std::vector<std::size_t> position;
    std::size_t next = 0;
    for (const ColumnDefinition& column : table.definition->columns) {
      position.push_back(column.stored ? next++ : std::numeric_limits<std::size_t>::max());
      defaults_.push_back(column.has_default);
    }
    std::vector<std::size_t> wanted;
    for (const Request& request : requests_) {
      if (request.column >= position.size() || !table.definition->columns[request.column].stored) {
        throw Error(Code::invalid_argument, "the table stores no such column");
      }
      wanted.push_back(position[request.column]);
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (const Request& request : requests_) {
      const auto at = std::lower_bound(wanted.begin(), wanted.end(), position[request.column]);
      slot_.push_back(static_cast<std::size_t>(at - wanted.begin()));
      out_.columns.emplace_back().kind = request.kind;
    }
    records_.emplace(*database.storage_, database.layout_, std::move(wanted));
  }

  // Whether the row is sound.
  bool sound(const Cell& cell) { return records_->read(cell, out_.damages); }

  // Takes the row that was found sound.
  void take(const Cell& cell) {
    ++out_.count;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      std::int64_t integer = 0;  // by far the most
      if (requests_[i].kind == Kind::kInteger && records_->integer(slot_[i], integer)) {
        push_integer(out_.columns[i], integer);
      } else {
        push(i, cell.rowid);
      }
    }
  }

  void take_nothing() {
    ++out_.count;
    for (std::size_t i = 0; i < requests_.size(); ++i) push_value(i, Value{});
  }

  void lose() { ++out_.lost; }
  Damages& damages() { return out_.damages; }
  [[nodiscard]] std::uint64_t count() const { return out_.count; }
  Rows finish() { return std::move(out_); }

 private:
  void push(std::size_t i, std::int64_t rowid) {
    const std::size_t column = requests_[i].column;
    Value value = records_->value(slot_[i]);
    if (static_cast<int>(column) == rowid_column_ && value.type == Type::kNull) {
      value.type = Type::kInteger;
      value.integer = rowid;
    }
    if (!fits(requests_[i].kind, value.type) || (!records_->recorded(slot_[i]) && defaults_[column])) {
      ++out_.columns[i].misfits;
    }
    push_value(i, value);
  }

  void push_value(std::size_t i, const Value& value) {
    ColumnValues& column = out_.columns[i];
    switch (column.kind) {
      case Kind::kInteger:
        if (value.type == Type::kInteger) {
          push_integer(column, value.integer);
        } else {
          push_missing(column);
        }
        break;
      case Kind::kReal:
        push_real(column, value);
        break;
      case Kind::kText:
        push_text(column, requests_[i], value);
        break;
      case Kind::kAny:
        push_any(column, value);
        break;
    }
  }

  void push_text(ColumnValues& column, const Request& request, const Value& value) {
    const bool is_text = value.type == Type::kText;
    const std::string_view whole = is_text ? as_utf8(value.bytes, encoding_, scratch_) : std::string_view{};
    const std::string_view text = request.cuts.empty() ? whole : before(whole, request.cuts);
    column.codes.push(is_text ? code(column, text) : -1);
    if (!request.cuts.empty()) column.cut.push(text.size() != whole.size() ? 1 : 0);
  }

  void push_any(ColumnValues& column, const Value& value) {
    column.types.push(static_cast<std::uint8_t>(value.type));
    std::int64_t content = value.integer;
    if (value.type == Type::kReal) content = std::bit_cast<std::int64_t>(value.real);
    if (value.type == Type::kText) content = code(column, as_utf8(value.bytes, encoding_, scratch_));
    if (value.type == Type::kBlob) content = code(column, as_utf8(value.bytes, Encoding::kUtf8, scratch_));
    column.integers.push(content);
  }

  static std::int32_t code(ColumnValues& column, std::string_view text) {
    const std::uint32_t found = column.texts.code(text);
    if (found > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) {
      throw Error(Code::not_supported, "too many distinct texts");
    }
    return static_cast<std::int32_t>(found);
  }

  std::vector<Request> requests_;
  Encoding encoding_;
  int rowid_column_;
  std::vector<bool> defaults_;
  std::vector<std::size_t> slot_;  // of each request, among the values of a row
  std::optional<Records> records_;
  std::string scratch_;
  Rows out_;
};

Database::Database(std::unique_ptr<Storage> storage) : storage_(std::move(storage)) {
  read_header();
  if (refusal_ == Refusal::kNone) read_schema();
}

void Database::read_header() {
  std::array<std::uint8_t, kFileHeader> header{};
  const std::size_t got = storage_->read(0, header);
  const std::string_view begin(reinterpret_cast<const char*>(header.data()), kMagic.size());
  if (got >= kMagic.size() && begin != kMagic) {
    refusal_ = Refusal::kMagic;
    return;
  }
  if (got < header.size()) {
    refusal_ = Refusal::kShort;
    return;
  }
  const std::uint32_t size = be16(&header[16]);
  layout_.page_size = size == 1 ? kMostPage : size;
  layout_.usable = layout_.page_size - header[20];
  if (layout_.page_size < kLeastPage || (layout_.page_size & (layout_.page_size - 1)) != 0 ||
      layout_.usable < kLeastUsable) {
    refusal_ = Refusal::kPageSize;
    return;
  }
  layout_.pages = storage_->size() / layout_.page_size;
  if (be32(&header[24]) == be32(&header[92])) stated_pages_ = be32(&header[28]);
  logged_ = header[18] == 2 || header[19] == 2;
  const std::uint32_t encoding = be32(&header[56]);
  if (encoding > 3) {
    refusal_ = Refusal::kEncoding;
    return;
  }
  if (encoding != 0) encoding_ = static_cast<Encoding>(encoding);  // 0: a database without a table
  if (layout_.pages == 0) refusal_ = Refusal::kShort;
}

// The list of tables is a table itself, at the first page.
void Database::read_schema() {
  Table list{"sqlite_schema", "table", 1, TableDefinition{}};
  for (const char* name : {"type", "name", "tbl_name", "rootpage", "sql"}) {
    list.definition->columns.push_back({name, "", true, false});
  }
  const std::vector<Request> requests = {
      {0, Kind::kText, {}}, {1, Kind::kText, {}}, {3, Kind::kInteger, {}}, {4, Kind::kText, {}}};
  Rows rows = read_all(list, requests, nullptr);
  damages_ = rows.damages;
  if (rows.count == 0 && damages_.count() != 0) {
    refusal_ = Refusal::kNoSchema;
    return;
  }
  const auto text = [&rows](std::size_t column, std::size_t row) -> std::string {
    const std::int32_t code = rows.columns[column].codes[row];
    return code < 0 ? std::string()
                    : std::string(rows.columns[column].texts.text(static_cast<std::uint32_t>(code)));
  };
  for (std::size_t row = 0; row < rows.count; ++row) {
    Table table;
    table.type = text(0, row);
    table.name = text(1, row);
    const std::int64_t root = rows.columns[2].integers[row];
    if (root > 0 && root <= std::numeric_limits<std::uint32_t>::max()) {
      table.root = static_cast<std::uint32_t>(root);
    }
    if (table.type == "table" && table.root != 0) table.definition = parse_create_table(text(3, row));
    tables_.push_back(std::move(table));
  }
}

const Table& Database::readable(std::size_t table) const {
  if (table >= tables_.size() || !tables_[table].readable()) {
    throw Error(Code::invalid_argument, "no table that can be read");
  }
  return tables_[table];
}

Rows Database::read_all(const Table& table, std::span<const Request> requests, Directory* directory) {
  Reading reading(*this, table, requests);
  Leaves leaves(*storage_, layout_, table.root, reading.damages());
  while (const std::uint32_t number = leaves.next()) {
    if (directory != nullptr) {
      directory->page.push_back(number);
      directory->first.push_back(reading.count());
    }
    each_cell(layout_, number, leaves.page(), reading.damages(), [&](const Cell& cell) {
      if (reading.sound(cell)) {
        reading.take(cell);
      } else {
        reading.lose();
      }
      return true;
    });
  }
  if (directory != nullptr) directory->rows = reading.count();
  return reading.finish();
}

Rows Database::read(std::size_t table, std::span<const Request> requests) {
  const Table& found = readable(table);
  Directory directory;
  Rows rows = read_all(found, requests, &directory);
  const std::lock_guard lock(mutex_);
  directories_.insert_or_assign(table, std::move(directory));
  return rows;
}

Rows Database::pick(std::size_t table, std::span<const Request> requests,
                    std::span<const std::int64_t> positions) {
  const Table& found = readable(table);
  const std::unique_lock lock(mutex_);
  auto known = directories_.find(table);
  if (known == directories_.end()) {
    known = directories_.emplace(table, Directory{}).first;
    read_all(found, {}, &known->second);
  }
  const Directory& directory = known->second;
  Reading reading(*this, found, requests);
  Window window(*storage_, layout_.page_size);
  for (std::size_t at = 0; at < positions.size();) {
    const std::int64_t wanted = positions[at];
    if (wanted < 0 || static_cast<std::uint64_t>(wanted) >= directory.rows ||
        (at > 0 && wanted <= positions[at - 1])) {
      throw Error(Code::invalid_argument, "positions have to rise, and to be within the table");
    }
    const auto after =
        std::upper_bound(directory.first.begin(), directory.first.end(), static_cast<std::uint64_t>(wanted));
    const auto leaf = static_cast<std::size_t>(after - directory.first.begin()) - 1;
    const std::uint64_t end = leaf + 1 < directory.first.size() ? directory.first[leaf + 1] : directory.rows;
    const std::size_t begin = at;
    std::uint64_t row = directory.first[leaf];
    const Bytes page = window.page(directory.page[leaf]);
    const auto here = [&] {
      return at < positions.size() && static_cast<std::uint64_t>(positions[at]) < end &&
             (at == begin || positions[at] > positions[at - 1]);
    };
    if (!page.empty()) {
      each_cell(layout_, directory.page[leaf], page, reading.damages(), [&](const Cell& cell) {
        if (!reading.sound(cell)) return true;
        if (static_cast<std::uint64_t>(positions[at]) == row++) {
          reading.take(cell);
          ++at;
        }
        return here();
      });
    }
    for (; here(); ++at) reading.take_nothing();  // the file has changed meanwhile
  }
  return reading.finish();
}

}  // namespace torchtrt_viz::sqlite
