#include "formats/sqlite/record.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace torchtrt_viz::sqlite {
namespace {

constexpr std::uint64_t kReal64 = 7, kZero = 8, kOne = 9, kFirstBytes = 12;
constexpr std::array<std::uint8_t, 10> kSizes = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

std::uint64_t size_of(std::uint64_t serial) {
  return serial < kSizes.size() ? kSizes[serial] : (serial - kFirstBytes) / 2;
}

Value value_of(std::uint64_t serial, Bytes bytes) {
  Value out;
  out.recorded = true;
  if (serial == 0) return out;
  if (serial >= kFirstBytes) {
    out.type = (serial & 1U) != 0 ? Type::kText : Type::kBlob;
    out.bytes = bytes;
  } else if (serial == kReal64) {
    out.type = Type::kReal;
    out.real = std::bit_cast<double>(be64(bytes.data()));
  } else {
    out.type = Type::kInteger;
    out.integer = serial == kZero ? 0 : serial == kOne ? 1 : signed_be(bytes.data(), bytes.size());
  }
  return out;
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
  bool cut = false;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    values_[i] = Value{};
    if (i >= found_) continue;
    const Place& at = places_[i];
    if (at.end > record.size()) {
      cut = true;
    } else {
      values_[i] = value_of(at.serial, record.subspan(at.begin, at.end - at.begin));
    }
  }
  if (cut) damages.note(Fault::kOverflow, cell.offset);
  return true;
}

}  // namespace torchtrt_viz::sqlite
