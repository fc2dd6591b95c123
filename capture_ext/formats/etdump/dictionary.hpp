// Strings by number: each distinct string once, in the order in which they first occur.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace torchtrt_viz::etdump {

// The strings are views of the file's bytes, which must outlive the dictionary. The hash is seeded at
// random, so that a file cannot be made to fill one bucket.
class Dictionary {
 public:
  Dictionary();

  std::int32_t add(std::string_view text);
  const std::vector<std::string_view>& values() const { return values_; }
  std::vector<std::string_view> take() { return std::move(values_); }

 private:
  std::uint64_t hash(std::string_view text) const;
  void grow();

  struct Slot {
    std::uint64_t hash;
    std::int32_t code;  // -1 free
  };
  std::uint64_t seed_;
  std::vector<Slot> slots_;
  std::vector<std::string_view> values_;
};

// Number the rows of up to eight int32 columns by their distinct combinations.
struct Groups {
  std::vector<std::int32_t> code;   // a row's group, numbered in the order in which groups first occur
  std::vector<std::int64_t> first;  // a group's first row
};
Groups group_rows(std::span<const std::span<const std::int32_t>> columns);

}  // namespace torchtrt_viz::etdump
