// Strings by number: each distinct string once, in the order in which they first occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace torchtrt_viz::perfetto {

constexpr std::int32_t kNone = -1;

class Strings {
 public:
  Strings();

  std::int32_t code(std::string_view text);
  [[nodiscard]] std::string_view text(std::int32_t code) const {
    return values_[static_cast<std::size_t>(code)];
  }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] std::vector<std::string> copy() const { return {values_.begin(), values_.end()}; }

 private:
  // Seeded at random, so that a file cannot be made to fill one bucket.
  struct Hash {
    std::uint64_t seed;
    std::size_t operator()(std::string_view text) const noexcept;
  };
  std::deque<std::string> values_;  // a deque keeps the strings, and so the keys' views, in place
  std::unordered_map<std::string_view, std::int32_t, Hash> codes_;
};

}  // namespace torchtrt_viz::perfetto
