// The tree of pages that holds a table, and the rows on its leaves.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/sqlite/bytes.hpp"
#include "formats/sqlite/damage.hpp"
#include "formats/sqlite/pages.hpp"

namespace torchtrt_viz::sqlite {

// How a database divides itself into pages.
struct Layout {
  std::uint32_t page_size = 0;
  std::uint32_t usable = 0;  // bytes of a page that hold rows
  std::uint64_t pages = 0;   // as many as there can be in the file

  [[nodiscard]] std::uint64_t offset(std::uint32_t page) const {
    return static_cast<std::uint64_t>(page - 1) * page_size;
  }
};

// A row as it lies on its page.
struct Cell {
  std::int64_t rowid = 0;
  std::uint64_t size = 0;      // of the record, its overflow included
  Bytes local;                 // what of it lies here
  std::uint32_t overflow = 0;  // first page of the rest, 0 none
  std::uint64_t offset = 0;    // in the file
};

// Steps through the leaves of a table from left to right. Every page is taken once; what is damaged is noted
// and passed over.
class Leaves {
 public:
  Leaves(const Storage& storage, const Layout& layout, std::uint32_t root, Damages& damages);

  // The next leaf's number, 0 at the end; `page()` is what it holds.
  std::uint32_t next();
  [[nodiscard]] Bytes page() const { return page_; }

 private:
  static constexpr std::size_t kDeepest = 64;  // SQLite itself stops at 20

  struct Level {
    std::vector<std::uint32_t> children;
    std::size_t at = 0;
  };
  bool open(std::uint32_t number);
  void push_children(std::uint32_t number);

  const Layout& layout_;
  Window window_;
  Visited visited_;
  Damages& damages_;
  std::vector<Level> levels_;
  Bytes page_;
};

// Calls row(cell) for every row of a leaf whose place on the page is sound, until it returns false.
template <typename Row>
void each_cell(const Layout& layout, std::uint32_t number, Bytes page, Damages& damages, Row&& row);

// Puts together the records that go on on further pages.
class Overflow {
 public:
  Overflow(const Storage& storage, const Layout& layout)
      : layout_(layout), window_(storage, layout.page_size), visited_(layout.pages) {}

  void begin(const Cell& cell);
  // At least the first `size` bytes of the record (size at most the cell's); empty where they are missing.
  Bytes first(std::uint64_t size);
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  const Layout& layout_;
  Window window_;
  Visited visited_;
  std::vector<std::uint8_t> record_;
  std::uint32_t next_ = 0;
  std::uint64_t size_ = 0;
  bool broken_ = false;
};

constexpr std::uint8_t kInteriorPage = 5, kLeafPage = 13;
constexpr std::size_t kFileHeader = 100;  // stands on the first page, before what the page holds

// How many of a record's bytes stay on its leaf.
inline std::uint64_t local_size(std::uint64_t size, std::uint32_t usable) {
  const std::uint64_t most = usable - 35;
  if (size <= most) return size;
  const std::uint64_t least = (static_cast<std::uint64_t>(usable) - 12) * 32 / 255 - 23;
  const std::uint64_t fitting = least + (size - least) % (usable - 4);
  return fitting <= most ? fitting : least;
}

template <typename Row>
void each_cell(const Layout& layout, std::uint32_t number, Bytes page, Damages& damages, Row&& row) {
  const std::size_t begin = number == 1 ? kFileHeader : 0;
  const std::size_t cells = be16(&page[begin + 3]);
  const std::size_t pointers = begin + 8;
  const Bytes usable = page.first(layout.usable);
  if (pointers + 2 * cells > usable.size()) {
    damages.note(Fault::kPage, layout.offset(number));
    return;
  }
  std::size_t taken = pointers + 2 * cells;  // of the page: rows that lie over one another would exceed it
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t at = be16(&page[pointers + 2 * i]);
    if (at < pointers + 2 * cells || at >= usable.size()) {
      damages.note(Fault::kCell, layout.offset(number) + pointers + 2 * i);
      continue;
    }
    Varints numbers(usable.subspan(at));
    Cell cell;
    cell.size = numbers.next();
    cell.rowid = static_cast<std::int64_t>(numbers.next());
    cell.offset = layout.offset(number) + at;
    const std::size_t body = at + numbers.read();
    const bool fits = !numbers.failed() && cell.size <= layout.pages * layout.page_size;
    const std::uint64_t local = fits ? local_size(cell.size, layout.usable) : 0;
    const std::size_t link = fits && local < cell.size ? 4 : 0;
    if (!fits || body + local + link > usable.size()) {
      damages.note(Fault::kCell, cell.offset);
      continue;
    }
    taken += body - at + local + link;
    if (taken > usable.size()) {
      damages.note(Fault::kCell, cell.offset);
      return;
    }
    cell.local = usable.subspan(body, local);
    if (link != 0) cell.overflow = be32(&page[body + local]);
    if (!row(cell)) return;
  }
}

}  // namespace torchtrt_viz::sqlite
