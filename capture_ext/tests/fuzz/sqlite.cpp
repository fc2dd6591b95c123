// libFuzzer harness of the reader of SQLite databases.
//
// A short run is part of the test suite (tests/fuzz/test_fuzz_sqlite.py), which also makes seeds. For a long
// one:
//
//   clang++-14 -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I capture_ext
//     capture_ext/tests/fuzz/sqlite.cpp capture_ext/formats/sqlite/*.cpp capture_ext/formats/io/interner.cpp
//     -o fuzz_sqlite
//   mkdir -p seeds found && cp ../shared/corpus/nsys/nsight-2025.5.2.sqlite seeds/
//   ./fuzz_sqlite -max_total_time=3600 -max_len=65536 -timeout=10 -rss_limit_mb=1024
//     -dict=capture_ext/tests/fuzz/sqlite.dict found seeds
//
// (one line each).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "formats/sqlite/database.hpp"

namespace sqlite = torchtrt_viz::sqlite;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// What the Python side relies on.
void check(const sqlite::Rows& rows, std::size_t bytes) {
  require(rows.count + rows.lost <= bytes);
  for (const sqlite::ColumnValues& column : rows.columns) {
    const std::size_t texts = column.texts.size();
    switch (column.kind) {
      case sqlite::Kind::kInteger:
        require(column.integers.size() == rows.count);
        require(column.missing.empty() || column.missing.size() == rows.count);
        break;
      case sqlite::Kind::kReal:
        require(column.reals.size() == rows.count);
        break;
      case sqlite::Kind::kText:
        require(column.codes.size() == rows.count);
        require(column.cut.empty() || column.cut.size() == rows.count);
        for (std::size_t i = 0; i < rows.count; ++i) {
          require(column.codes[i] >= -1 &&
                  (column.codes[i] < 0 || static_cast<std::size_t>(column.codes[i]) < texts));
        }
        break;
      case sqlite::Kind::kAny:
        require(column.integers.size() == rows.count && column.types.size() == rows.count);
        for (std::size_t i = 0; i < rows.count; ++i) {
          require(column.types[i] <= 4);
          require(column.types[i] < 3 || static_cast<std::size_t>(column.integers[i]) < texts);
        }
        break;
    }
  }
}

void read_table(sqlite::Database& database, std::size_t table, std::size_t bytes) {
  const auto& columns = database.tables()[table].definition->columns;
  std::vector<sqlite::Request> requests;
  for (std::size_t i = 0; i < columns.size() && i < 64; ++i) {
    if (!columns[i].stored) continue;
    const auto kind = static_cast<sqlite::Kind>(i % 4);
    requests.push_back({i, kind, {}});
    if (kind == sqlite::Kind::kText) requests.back().cuts = {", a", ", op_id = "};
    requests.push_back({i, sqlite::Kind::kAny, {}});
  }
  const sqlite::Rows rows = database.read(table, requests);
  check(rows, bytes);
  std::vector<std::int64_t> positions;
  for (std::size_t at = table % 3; at < rows.count && positions.size() < 50; at += 1 + rows.count / 20) {
    positions.push_back(static_cast<std::int64_t>(at));
  }
  const sqlite::Rows some = database.pick(table, requests, positions);
  require(some.count == positions.size());
  check(some, bytes + positions.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sqlite::Database database(std::make_unique<sqlite::Storage>(sqlite::Bytes(data, size)));
  if (database.refusal() != sqlite::Refusal::kNone) return 0;
  require(database.tables().size() <= size);
  // a list of many tables may name one root again and again
  for (std::size_t table = 0; table < database.tables().size() && table < 16; ++table) {
    if (database.tables()[table].readable()) read_table(database, table, size);
  }
  return 0;
}
