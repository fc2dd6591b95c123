// Which spans a search or a highlight has marked, in the form that a scan over millions of them wants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "columns/timeline_index.hpp"

namespace torchtrt_viz {

class Marks {
 public:
  // `names` is one more than the largest name code.
  Marks(const Marked& marked, std::size_t names) : any_(marked.any()), rows_(marked.rows) {
    if (marked.names.empty()) return;
    names_.assign(names + 1, 0);  // shifted by one, so that "no name" (-1) needs no question
    std::copy_n(marked.names.begin(), std::min(marked.names.size(), names), names_.begin() + 1);
  }

  [[nodiscard]] bool any() const { return any_; }

  [[nodiscard]] bool of(std::int32_t name, std::uint32_t row) const {
    return (!names_.empty() && by_name(name)) || by_row(row);
  }

  // Calls use(test) with the cheapest test(name, row) that serves, for loops over millions of spans.
  template <typename Use>
  void with_test(const Use& use) const {
    if (rows_.empty() && !names_.empty()) {
      use([this](std::int32_t name, std::uint32_t) { return by_name(name); });
    } else {
      use([this](std::int32_t name, std::uint32_t row) { return of(name, row); });
    }
  }

  // The first marked position of [from, to), or `to`.
  [[nodiscard]] std::size_t first(std::span<const std::int32_t> name, std::span<const std::uint32_t> row,
                                  std::size_t from, std::size_t to) const {
    if (rows_.empty()) {
      if (names_.empty()) return to;
      while (from < to && !by_name(name[from])) ++from;
    } else {
      while (from < to && !of(name[from], row[from])) ++from;
    }
    return from;
  }

 private:
  [[nodiscard]] bool by_name(std::int32_t name) const {
    return names_[static_cast<std::size_t>(std::int64_t{name} + 1)] != 0;
  }
  [[nodiscard]] bool by_row(std::uint32_t row) const { return row < rows_.size() && rows_[row] != 0; }

  bool any_;
  std::vector<std::uint8_t> names_;
  std::span<const std::uint8_t> rows_;
};

}  // namespace torchtrt_viz
