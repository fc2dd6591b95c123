#include "formats/io/trace_table.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

namespace torchtrt_viz {
namespace {

Error wrong(const std::string& what) { return {Code::invalid_argument, what}; }

bool rows_exist(std::span<const std::int32_t> rows, std::size_t count) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](std::int32_t row) { return row >= 0 && static_cast<std::size_t>(row) < count; });
}

}  // namespace

void TraceTable::check() const {
  const auto rows = name.size();
  if (track.size() != rows || start_ns.size() != rows || dur_ns.size() != rows ||
      (!category.empty() && category.size() != rows) || (!args.empty() && args.size() != rows)) {
    throw wrong("the columns of the spans differ in length");
  }
  if (!rows_exist(name, names.size())) throw wrong("a span's name is not a row of names");
  if (!rows_exist(track, tracks.size())) throw wrong("a span's track is not a row of tracks");
  if (!rows_exist(category, categories.size())) throw wrong("a span's category is not a row of categories");
  for (std::size_t i = 0; i < rows; ++i) {
    if (dur_ns[i] < 0 ||
        (start_ns[i] > 0 && dur_ns[i] > std::numeric_limits<std::int64_t>::max() - start_ns[i])) {
      throw wrong("span " + std::to_string(i) + " has a duration that is negative or has no end");
    }
  }
}

}  // namespace torchtrt_viz
