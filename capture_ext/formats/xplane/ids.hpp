// Numbers that a file chose for its descriptions, looked up without trusting them to be well spread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace torchtrt_viz::xplane {

class Ids {
 public:
  void add(std::int64_t id, std::uint32_t row) { pairs_.emplace_back(id, row); }

  // Call once, after the last add. Of equal ids the last one counts.
  void settle() {
    std::stable_sort(pairs_.begin(), pairs_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::size_t room = pairs_.size() * 4 + 256;
    if (pairs_.empty() || pairs_.front().first < 0 || pairs_.back().first >= static_cast<std::int64_t>(room))
      return;
    table_.assign(static_cast<std::size_t>(pairs_.back().first) + 1, kNone);
    for (const auto& [id, row] : pairs_) table_[static_cast<std::size_t>(id)] = row;
  }

  [[nodiscard]] std::uint32_t find(std::int64_t id) const {
    if (!table_.empty()) {
      const auto at = static_cast<std::uint64_t>(id);
      return at < table_.size() ? table_[static_cast<std::size_t>(at)] : kNone;
    }
    const auto behind =
        std::upper_bound(pairs_.begin(), pairs_.end(), id,
                         [](std::int64_t wanted, const auto& pair) { return wanted < pair.first; });
    return behind != pairs_.begin() && (behind - 1)->first == id ? (behind - 1)->second : kNone;
  }

  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

 private:
  std::vector<std::pair<std::int64_t, std::uint32_t>> pairs_;
  std::vector<std::uint32_t> table_;
};

}  // namespace torchtrt_viz::xplane
