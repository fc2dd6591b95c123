#include "formats/sqlite/utf16.hpp"

namespace torchtrt_viz::sqlite {
namespace {

void append(std::string& out, std::uint32_t point) {
  const auto byte = [&out](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  const auto further = [&byte](std::uint32_t bits) { byte(0x80U | (bits & 0x3FU)); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0U | point >> 6);
    further(point);
  } else if (point < 0x10000) {
    byte(0xE0U | point >> 12);
    further(point >> 6);
    further(point);
  } else {
    byte(0xF0U | point >> 18);
    further(point >> 12);
    further(point >> 6);
    further(point);
  }
}

}  // namespace

std::string_view as_utf8(Bytes bytes, Encoding encoding, std::string& scratch) {
  if (encoding == Encoding::kUtf8) return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  constexpr std::uint32_t kReplacement = 0xFFFD;
  scratch.clear();
  const auto unit = [&](std::size_t i) -> std::uint32_t {
    return encoding == Encoding::kUtf16Big ? be16(&bytes[i])
                                           : static_cast<std::uint32_t>(bytes[i] | bytes[i + 1] << 8);
  };
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const std::uint32_t first = unit(i);
    if (first < 0xD800 || first > 0xDFFF) {
      append(scratch, first);
    } else if (first < 0xDC00 && i + 3 < bytes.size() && (unit(i + 2) & 0xFC00U) == 0xDC00U) {
      append(scratch, 0x10000 + ((first - 0xD800) << 10) + (unit(i + 2) - 0xDC00));
      i += 2;
    } else {
      append(scratch, kReplacement);
    }
  }
  return scratch;
}

}  // namespace torchtrt_viz::sqlite
