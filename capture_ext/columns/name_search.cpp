#include "columns/name_search.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "core/error.hpp"

namespace torchtrt_viz {

std::vector<std::uint8_t> names_with(std::string_view texts, std::span<const std::int64_t> offsets,
                                     std::string_view wanted) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() > static_cast<std::int64_t>(texts.size()) ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    throw Error(Code::invalid_argument, "offsets of names begin at 0, never fall and end within the texts");
  }
  const std::size_t names = offsets.size() - 1;
  if (wanted.empty()) return std::vector<std::uint8_t>(names, 1);
  std::vector<std::uint8_t> out(names, 0);
  // One search over all texts as if they were one; a find that reaches from one name into the next is none.
  const std::boyer_moore_horspool_searcher search(wanted.begin(), wanted.end());
  const auto end = texts.begin() + static_cast<std::ptrdiff_t>(offsets.back());
  auto from = texts.begin();
  std::size_t name = 0;
  while (true) {
    const auto found = std::search(from, end, search);
    if (found == end) return out;
    const std::int64_t at = found - texts.begin();
    while (offsets[name + 1] <= at) ++name;
    if (at + static_cast<std::int64_t>(wanted.size()) <= offsets[name + 1]) {
      out[name] = 1;
      from = texts.begin() + static_cast<std::ptrdiff_t>(offsets[name + 1]);
    } else {
      from = found + 1;
    }
  }
}

}  // namespace torchtrt_viz
