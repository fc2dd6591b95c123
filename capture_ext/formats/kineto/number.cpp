#include "formats/kineto/number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace torchtrt_viz::kineto {
namespace {

unsigned digit_of(char c) { return static_cast<unsigned>(static_cast<unsigned char>(c)) - '0'; }

// Decimal text of any length and exponent: keeps the significant digits and places the point.
NumberState read_long_time(const char* p, bool negative, std::int64_t& ns) {
  constexpr int kKept = 40;  // more than any int64 has; digits beyond only decide "not exactly half"
  constexpr int kMaxExponent = 100000;
  std::array<unsigned char, kKept> digits{};
  int count = 0;      // significant digits kept
  int point = 0;      // the value is 0.d1d2d3... * 10^point
  bool rest = false;  // a nonzero digit was not kept
  bool any = false;   // a digit was seen
  bool fraction = false;
  for (;; ++p) {
    if (*p == '.' && !fraction) {
      fraction = true;
      continue;
    }
    const unsigned digit = digit_of(*p);
    if (digit > 9) break;
    any = true;
    if (digit == 0 && count == 0) {
      if (fraction) point = std::max(point - 1, -kMaxExponent);
      continue;
    }
    if (count < kKept) {
      digits[static_cast<std::size_t>(count++)] = static_cast<unsigned char>(digit);
    } else {
      rest |= digit != 0;
    }
    if (!fraction) point = std::min(point + 1, kMaxExponent);
  }
  if (!any) return NumberState::invalid;
  if (*p == 'e' || *p == 'E') {
    ++p;
    const bool down = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    if (digit_of(*p) > 9) return NumberState::invalid;
    int exponent = 0;
    for (; digit_of(*p) <= 9; ++p) {
      exponent = std::min(exponent * 10 + static_cast<int>(digit_of(*p)), kMaxExponent);
    }
    point += down ? -exponent : exponent;
  }
  if (!is_delimiter(*p)) return NumberState::invalid;
  if (count == 0) {
    ns = 0;
    return NumberState::valid;
  }
  const int whole = point + 3;  // digits before the point once the value is in nanoseconds
  if (whole > 19) return NumberState::invalid;
  unsigned __int128 value = 0;
  for (int i = 0; i < whole; ++i) {
    value = value * 10 + (i < count ? digits[static_cast<std::size_t>(i)] : 0U);
  }
  if (whole >= 0 && whole < count) {
    const unsigned next = digits[static_cast<std::size_t>(whole)];
    const bool beyond = rest || std::any_of(digits.begin() + whole + 1, digits.begin() + count,
                                            [](unsigned char digit) { return digit != 0; });
    if (next > 5 || (next == 5 && (beyond || (value & 1U) != 0))) ++value;
  }
  if (value > static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max())) {
    return NumberState::invalid;
  }
  ns = static_cast<std::int64_t>(value);
  if (negative) ns = -ns;
  return NumberState::valid;
}

}  // namespace

NumberState read_time(const char* p, std::int64_t& ns) {
  if (*p == '"') ++p;
  const bool negative = *p == '-';
  if (negative) ++p;
  const char* const first = p;
  std::uint64_t value = 0;
  unsigned digit = 0;
  while ((digit = digit_of(*p)) <= 9) {
    value = value * 10 + digit;
    ++p;
  }
  const char* const point = p;
  int decimals = 0;
  if (*p == '.') {
    ++p;
    while ((digit = digit_of(*p)) <= 9) {
      value = value * 10 + digit;
      ++p;
    }
    decimals = static_cast<int>(std::min<std::ptrdiff_t>(p - point - 1, 4));
  }
  // Up to 18 digits in nanoseconds cannot overflow; everything unusual takes the long way.
  if (point - first > 15 || decimals > 3 || *p == 'e' || *p == 'E') {
    return read_long_time(first, negative, ns);
  }
  if (p - first == (p == point ? 0 : 1)) {  // no digit: `null` and "" say that nothing was recorded
    const bool nothing = !negative && p == first && (*p == '"' || std::string_view(p, 2) == "nu");
    return nothing ? NumberState::absent : NumberState::invalid;
  }
  if (!is_delimiter(*p)) return NumberState::invalid;
  static constexpr std::array<std::uint64_t, 4> kScale{1000, 100, 10, 1};
  value *= kScale[static_cast<std::size_t>(decimals)];
  ns = negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  return NumberState::valid;
}

bool read_integer(const char* p, std::int64_t& value) {
  if (*p == '"') ++p;
  const bool negative = *p == '-';
  if (negative) ++p;
  const char* const first = p;
  std::uint64_t magnitude = 0;
  unsigned digit = 0;
  while ((digit = digit_of(*p)) <= 9) {
    magnitude = magnitude * 10 + digit;
    ++p;
  }
  if (p == first || !is_delimiter(*p)) return false;
  if (p - first > 18) {
    const char* from = negative ? first - 1 : first;
    const auto [end, error] = std::from_chars(from, p, value);
    return error == std::errc{} && end == p;
  }
  value = negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
  return true;
}

bool read_hexadecimal(std::string_view text, std::int64_t& value) {
  if (text.size() < 3 || text[0] != '0' || (text[1] | 32) != 'x') return false;
  std::uint64_t magnitude = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, magnitude, 16);
  if (error != std::errc{} || stop != end) return false;
  if (magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
  value = static_cast<std::int64_t>(magnitude);
  return true;
}

bool read_real(std::string_view text, double& value) {
  if (!text.empty() && text.front() == '"') text.remove_prefix(1);
  while (!text.empty() && (is_delimiter(text.back()))) text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.empty() || text.size() > 400) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  if (error == std::errc::result_out_of_range) {
    const bool small = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    value = small ? 0.0 : std::numeric_limits<double>::infinity();
    if (text.front() == '-') value = -value;
    return true;
  }
  return error == std::errc{};
}

}  // namespace torchtrt_viz::kineto
