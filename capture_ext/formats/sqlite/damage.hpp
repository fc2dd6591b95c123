// Where a database is damaged, and how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace torchtrt_viz::sqlite {

enum class Fault : std::uint8_t {
  kTruncated,  // a page behind the end of the file
  kRevisited,  // a page that is reached twice
  kPage,       // a page of another kind, or whose own numbers do not fit
  kDepth,      // a tree deeper than any that SQLite makes
  kCell,       // a row outside of its page, or over another one
  kRecord,     // a row whose values do not fit into it
  kOverflow,   // the rest of a long row is missing
};

struct Damage {
  Fault fault;
  std::uint64_t offset;  // in the file
};

class Damages {
 public:
  void note(Fault fault, std::uint64_t offset) {
    ++count_;
    if (first_.size() < kKept) first_.push_back({fault, offset});
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] const std::vector<Damage>& first() const { return first_; }

 private:
  static constexpr std::size_t kKept = 32;

  std::uint64_t count_ = 0;
  std::vector<Damage> first_;
};

}  // namespace torchtrt_viz::sqlite
