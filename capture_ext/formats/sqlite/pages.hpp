// Where the pages of a database are: in memory, or in a file that is read page by page and never mapped, so
// that one that shrinks meanwhile is a short read and no signal.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/sqlite/bytes.hpp"

namespace torchtrt_viz::sqlite {

class Storage {
 public:
  explicit Storage(Bytes held) : held_(held), size_(held.size()) {}
  explicit Storage(int descriptor);  // duplicated, so that the caller may close his own
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool in_memory() const { return descriptor_ < 0; }
  // Bytes in memory; as many as there are.
  [[nodiscard]] Bytes held(std::uint64_t offset, std::size_t size) const;
  // Reads into `out`; returns how many bytes there were.
  std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const;

 private:
  Bytes held_;
  std::uint64_t size_;
  int descriptor_ = -1;
};

// Whole pages, one at a time. Pages that follow one another are read together.
class Window {
 public:
  Window(const Storage& storage, std::uint32_t page_size) : storage_(storage), page_size_(page_size) {}

  // Page `number`, counted from 1; valid until the next call. Empty where the file has no such whole page.
  Bytes page(std::uint32_t number);

 private:
  static constexpr std::uint64_t kMost = 1U << 17;  // bytes read at once

  const Storage& storage_;
  std::uint32_t page_size_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t begin_ = 0, end_ = 0;  // what the buffer holds of the file
  std::uint64_t ahead_ = 0;            // bytes read the last time, doubled while pages follow one another
};

// Which pages were seen: in a sound database no page is reached twice.
class Visited {
 public:
  explicit Visited(std::uint64_t pages) : seen_(pages + 1, false) {}
  // Whether it is the first time.
  bool first(std::uint32_t page) {
    if (page >= seen_.size() || seen_[page]) return false;
    seen_[page] = true;
    return true;
  }

 private:
  std::vector<bool> seen_;
};

}  // namespace torchtrt_viz::sqlite
