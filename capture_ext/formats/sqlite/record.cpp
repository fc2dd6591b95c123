#include "formats/sqlite/record.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace torchtrt_viz::sqlite {
namespace {

constexpr std::array<std::uint8_t, 10> kSizes = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

std::uint64_t size_of(std::uint64_t serial) {
  return serial < kSizes.size() ? kSizes[serial] : (serial - kFirstBytesSerial) / 2;
}

}  // namespace

bool Records::place(Bytes header, std::size_t header_size, const Cell& cell) {
  Varints serials(header.subspan(0, header_size));
  serials.next();
  std::uint64_t body = header_size;
  found_ = 0;
  for (std::size_t column = 0; serials.read() < header_size; ++column) {
    const std::uint64_t serial = serials.next();
    if (serials.failed() || serial == 10 || serial == 11) return false;
    const std::uint64_t size = size_of(serial);
    if (size > cell.size - body) return false;
    if (found_ < wanted_.size() && wanted_[found_] == column) places_[found_++] = {serial, body, body + size};
    body += size;
  }
  return true;
}

bool Records::read(const Cell& cell, Damages& damages) {
  Bytes record = cell.local;
  if (cell.overflow != 0) overflow_.begin(cell);
  Varints start(record);
  const std::uint64_t header_size = start.next();
  bool sound = !start.failed() && header_size >= start.read() && header_size <= cell.size;
  if (sound && header_size > record.size()) {
    record = overflow_.first(header_size);
    sound = !record.empty();
  }
  if (!sound || !place(record, header_size, cell)) {
    damages.note(Fault::kRecord, cell.offset);
    return false;
  }
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < found_; ++i) end = std::max(end, places_[i].end);
  if (end > record.size()) {
    const Bytes longer = overflow_.first(end);
    if (!longer.empty()) record = longer;
  }
  record_ = record;
  if (end > record.size()) damages.note(Fault::kOverflow, cell.offset);
  return true;
}

Type Records::type(std::size_t i) const {
  const Place& at = places_[i];
  if (i >= found_ || at.serial == kNullSerial || at.end > record_.size()) return Type::kNull;
  if (at.serial >= kFirstBytesSerial) return (at.serial & 1U) != 0 ? Type::kText : Type::kBlob;
  return at.serial == kRealSerial ? Type::kReal : Type::kInteger;
}

Value Records::value(std::size_t i) const {
  Value out;
  out.type = type(i);
  const Place& at = places_[i];
  switch (out.type) {
    case Type::kNull:
      break;
    case Type::kInteger:
      integer(i, out.integer);
      break;
    case Type::kReal:
      out.real = std::bit_cast<double>(be64(&record_[at.begin]));
      break;
    case Type::kText:
    case Type::kBlob:
      out.bytes = record_.subspan(at.begin, at.end - at.begin);
      break;
  }
  return out;
}

}  // namespace torchtrt_viz::sqlite
