#include "formats/sqlite/tree.hpp"

#include <algorithm>

namespace torchtrt_viz::sqlite {

Leaves::Leaves(const Storage& storage, const Layout& layout, std::uint32_t root, Damages& damages)
    : layout_(layout), window_(storage, layout.page_size), visited_(layout.pages), damages_(damages) {
  levels_.push_back({{root}, 0});
}

std::uint32_t Leaves::next() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.at == level.children.size()) {
      levels_.pop_back();
      continue;
    }
    const std::uint32_t number = level.children[level.at++];
    if (!open(number)) continue;
    if (page_[number == 1 ? kFileHeader : 0] == kLeafPage) return number;
    push_children(number);
  }
  return 0;
}

bool Leaves::open(std::uint32_t number) {
  page_ = window_.page(number);
  if (page_.empty() || !visited_.first(number)) {
    const std::uint64_t at = number == 0 ? 0 : layout_.offset(number);
    damages_.note(page_.empty() ? Fault::kTruncated : Fault::kRevisited, at);
    return false;
  }
  const std::uint8_t kind = page_[number == 1 ? kFileHeader : 0];
  if (kind != kLeafPage && kind != kInteriorPage) {
    damages_.note(Fault::kPage, layout_.offset(number));
    return false;
  }
  return true;
}

void Leaves::push_children(std::uint32_t number) {
  const std::size_t begin = number == 1 ? kFileHeader : 0;
  const std::size_t cells = be16(&page_[begin + 3]);
  const std::size_t pointers = begin + 12;
  if (pointers + 2 * cells > layout_.usable) {
    damages_.note(Fault::kPage, layout_.offset(number));
    return;
  }
  if (levels_.size() == kDeepest) {
    damages_.note(Fault::kDepth, layout_.offset(number));
    return;
  }
  Level below;
  below.children.reserve(cells + 1);
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t at = be16(&page_[pointers + 2 * i]);
    if (at + 4 > layout_.usable) {
      damages_.note(Fault::kCell, layout_.offset(number) + pointers + 2 * i);
      continue;
    }
    below.children.push_back(be32(&page_[at]));
  }
  below.children.push_back(be32(&page_[begin + 8]));
  levels_.push_back(std::move(below));
}

void Overflow::begin(const Cell& cell) {
  record_.assign(cell.local.begin(), cell.local.end());
  next_ = cell.overflow;
  size_ = cell.size;
  broken_ = false;
}

Bytes Overflow::first(std::uint64_t size) {
  while (record_.size() < size && !broken_) {
    const Bytes page = window_.page(next_);
    if (page.empty() || !visited_.first(next_)) {
      broken_ = true;
      break;
    }
    const std::uint64_t part = std::min<std::uint64_t>(layout_.usable - 4, size_ - record_.size());
    const Bytes body = page.subspan(4, part);
    next_ = be32(page.data());
    record_.insert(record_.end(), body.begin(), body.end());
  }
  return record_.size() < size ? Bytes{} : Bytes(record_);
}

}  // namespace torchtrt_viz::sqlite
