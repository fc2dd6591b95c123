// Module torchtrt_viz._native.sqlite: SQLite databases as tables of columns.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"
#include "formats/sqlite/database.hpp"

namespace nb = nanobind;
namespace sqlite = torchtrt_viz::sqlite;
using namespace torchtrt_viz::bindings;

namespace {

const char* name_of(sqlite::Fault fault) {
  switch (fault) {
    case sqlite::Fault::kTruncated:
      return "truncated";
    case sqlite::Fault::kRevisited:
      return "revisited";
    case sqlite::Fault::kPage:
      return "page";
    case sqlite::Fault::kDepth:
      return "depth";
    case sqlite::Fault::kCell:
      return "cell";
    case sqlite::Fault::kRecord:
      return "record";
    case sqlite::Fault::kOverflow:
      return "overflow";
  }
  return "page";
}

const char* name_of(sqlite::Refusal refusal) {
  switch (refusal) {
    case sqlite::Refusal::kNone:
      return "";
    case sqlite::Refusal::kShort:
      return "short";
    case sqlite::Refusal::kMagic:
      return "magic";
    case sqlite::Refusal::kPageSize:
      return "page_size";
    case sqlite::Refusal::kEncoding:
      return "encoding";
    case sqlite::Refusal::kNoSchema:
      return "no_schema";
  }
  return "";
}

sqlite::Kind kind_of(const std::string& name) {
  if (name == "integer") return sqlite::Kind::kInteger;
  if (name == "real") return sqlite::Kind::kReal;
  if (name == "text") return sqlite::Kind::kText;
  if (name == "any") return sqlite::Kind::kAny;
  throw nb::value_error("a column is wanted as integer, real, text or any");
}

nb::tuple damages_of(const sqlite::Damages& damages) {
  nb::list first;
  for (const auto& damage : damages.first())
    first.append(nb::make_tuple(name_of(damage.fault), damage.offset));
  return nb::make_tuple(damages.count(), first);
}

nb::list texts_of(const torchtrt_viz::Interner& values) {
  nb::list out;
  for (std::uint32_t code = 0; code < values.size(); ++code) out.append(text(std::string(values.text(code))));
  return out;
}

// Texts and blobs of a column in which each value has its own type: as bytes, which both are.
nb::list bytes_of(const torchtrt_viz::Interner& values) {
  nb::list out;
  for (std::uint32_t code = 0; code < values.size(); ++code) {
    const std::string_view value = values.text(code);
    out.append(nb::bytes(value.data(), value.size()));
  }
  return out;
}

nb::dict column_of(sqlite::ColumnValues&& column, bool cuts) {
  nb::dict out;
  out["misfits"] = column.misfits;
  switch (column.kind) {
    case sqlite::Kind::kInteger:
      out["values"] = give(std::move(column.integers));
      if (column.missing.empty()) {
        out["missing"] = nb::none();
      } else {
        out["missing"] = give(std::move(column.missing));
      }
      break;
    case sqlite::Kind::kReal:
      out["values"] = give(std::move(column.reals));
      break;
    case sqlite::Kind::kText:
      out["values"] = give(std::move(column.codes));
      out["texts"] = texts_of(column.texts);
      if (cuts) out["cut"] = give(std::move(column.cut));
      break;
    case sqlite::Kind::kAny:
      out["values"] = give(std::move(column.integers));
      out["types"] = give(std::move(column.types));
      out["texts"] = bytes_of(column.texts);
      break;
  }
  return out;
}

using Wanted = std::vector<nb::tuple>;

std::vector<sqlite::Request> requests_of(const Wanted& wanted) {
  std::vector<sqlite::Request> out;
  for (const nb::tuple& each : wanted) {
    sqlite::Request request;
    request.column = nb::cast<std::size_t>(each[0]);
    request.kind = kind_of(nb::cast<std::string>(each[1]));
    request.cuts = nb::cast<std::vector<std::string>>(each[2]);
    for (const std::string& cut : request.cuts) {
      if (cut.empty() || cut[0] != request.cuts[0][0]) {
        throw nb::value_error("what texts are cut before has to begin with one and the same byte");
      }
    }
    out.push_back(std::move(request));
  }
  return out;
}

nb::dict rows_of(sqlite::Rows&& rows, const std::vector<sqlite::Request>& requests) {
  nb::dict out;
  nb::list columns;
  for (std::size_t i = 0; i < rows.columns.size(); ++i) {
    columns.append(column_of(std::move(rows.columns[i]), !requests[i].cuts.empty()));
  }
  out["rows"] = rows.count;
  out["lost"] = rows.lost;
  out["columns"] = columns;
  out["damages"] = damages_of(rows.damages);
  return out;
}

// A database, and the bytes that it lies in.
class Database {
 public:
  explicit Database(int descriptor) : database_(std::make_unique<sqlite::Storage>(descriptor)) {}
  explicit Database(nb::bytes data)
      : data_(std::move(data)),
        database_(std::make_unique<sqlite::Storage>(
            sqlite::Bytes(static_cast<const std::uint8_t*>(data_.data()), data_.size()))) {}

  nb::dict about() const {
    nb::dict out;
    out["refusal"] = name_of(database_.refusal());
    out["bytes"] = database_.size();
    out["page_size"] = database_.layout().page_size;
    out["pages"] = database_.layout().pages;
    out["stated_pages"] = database_.stated_pages();
    out["encoding"] = static_cast<int>(database_.encoding());
    out["logged"] = database_.logged();
    out["damages"] = damages_of(database_.damages());
    nb::list tables;
    for (const sqlite::Table& table : database_.tables()) {
      nb::list columns;
      if (table.definition) {
        for (const auto& column : table.definition->columns) {
          columns.append(nb::make_tuple(text(column.name), text(column.type), column.stored));
        }
      }
      const bool without_rowid = table.definition && table.definition->without_rowid;
      tables.append(
          nb::make_tuple(text(table.name), text(table.type), table.readable(), without_rowid, columns));
    }
    out["tables"] = tables;
    return out;
  }

  nb::dict read(std::size_t table, const Wanted& wanted) {
    const std::vector<sqlite::Request> requests = requests_of(wanted);
    sqlite::Rows rows = [&] {
      nb::gil_scoped_release released;
      return database_.read(table, requests);
    }();
    return rows_of(std::move(rows), requests);
  }

  nb::dict pick(std::size_t table, const Wanted& wanted, const ConstColumn<std::int64_t>& positions) {
    const std::vector<sqlite::Request> requests = requests_of(wanted);
    sqlite::Rows rows = [&] {
      nb::gil_scoped_release released;
      return database_.pick(table, requests, view(positions));
    }();
    return rows_of(std::move(rows), requests);
  }

 private:
  nb::bytes data_;
  sqlite::Database database_;
};

}  // namespace

NB_MODULE(sqlite, m) {  // NOLINT(performance-unnecessary-value-param): the macro declares it
  m.doc() = "SQLite databases as tables of columns, read and never executed.";
  translate_failures();
  nb::class_<Database>(m, "Database")
      .def(nb::init<int>(), nb::arg("source"))
      .def(nb::init<nb::bytes>(), nb::arg("source"))
      .def("about", &Database::about)
      .def("read", &Database::read, nb::arg("table"), nb::arg("columns"))
      .def("pick", &Database::pick, nb::arg("table"), nb::arg("columns"), nb::arg("positions"));
}
