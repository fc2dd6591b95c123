#include "formats/kineto/text.hpp"

#include <algorithm>

namespace torchtrt_viz::kineto {
namespace {

constexpr unsigned kReplacement = 0xFFFD;

// Four hexadecimal digits; 0xFFFFFFFF when they are not.
unsigned four_digits(const char* p, const char* end) {
  constexpr unsigned kNot = 0xFFFFFFFF;
  if (end - p < 4) return kNot;
  unsigned value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if ((c | 32) >= 'a' && (c | 32) <= 'f') {
      digit = static_cast<unsigned>((c | 32) - 'a') + 10;
    } else {
      return kNot;
    }
    value = value * 16 + digit;
  }
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return '\0';
  }
}

// Copies the escape at `p` (just behind "\u"), both halves of a pair at once; returns behind it.
const char* unicode_escape(const char* p, const char* end, Unescaped& out) {
  const unsigned high = four_digits(p, end);
  if (high > 0xFFFF) {
    out.invalid_escape = true;
    out.text += "\\u";
    return p;
  }
  p += 4;
  if (high < 0xD800 || high > 0xDFFF) {
    append_utf8(out.text, high);
    return p;
  }
  if (high < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const unsigned low = four_digits(p + 2, end);
    if (low >= 0xDC00 && low <= 0xDFFF) {
      append_utf8(out.text, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
      return p + 6;
    }
  }
  out.lone_surrogate = true;
  append_utf8(out.text, kReplacement);
  return p;
}

}  // namespace

void append_utf8(std::string& out, unsigned code_point) {
  const auto put = [&out](unsigned byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::size_t utf8_length(const char* p, const char* end) {
  const auto byte = [p](int i) { return static_cast<unsigned>(static_cast<unsigned char>(p[i])); };
  const auto follows = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
  const auto left = end - p;
  if (left < 1) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return left >= 2 && follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    if (left < 3 || !follows(1) || !follows(2)) return 0;
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) >= 0x90;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

Unescaped unescape(std::string_view raw) {
  Unescaped out;
  out.text.reserve(raw.size());
  const char* p = raw.data();
  const char* const end = p + raw.size();
  while (p != end) {
    const char* const slash = std::find(p, end, '\\');
    out.text.append(p, slash);
    if (slash == end) break;
    p = slash + 1;
    if (p == end) {
      out.invalid_escape = true;
      out.text += '\\';
      break;
    }
    if (*p == 'u') {
      p = unicode_escape(p + 1, end, out);
    } else if (const char c = simple_escape(*p); c != '\0') {
      out.text += c;
      ++p;
    } else {
      out.invalid_escape = true;
      out.text += '\\';  // the letter behind it follows as ordinary text
    }
  }
  return out;
}

}  // namespace torchtrt_viz::kineto
