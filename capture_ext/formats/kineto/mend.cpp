#include "formats/kineto/mend.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>

#include "formats/kineto/scan.hpp"
#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

constexpr std::ptrdiff_t kKeyReach = 256;  // a key further away is not what follows a string
constexpr std::size_t kLongestNumber = 1000;

void append_escaped(std::string& out, unsigned char byte) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u00";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

bool same_word(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

// -?digits[.digits][e[+-]digits], as JSON has it
bool is_number(std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const auto digits = [&] {
    const char* const from = p;
    while (p != end && *p >= '0' && *p <= '9') ++p;
    return p != from;
  };
  if (p != end && *p == '-') ++p;
  const bool zero = p != end && *p == '0';
  const char* const whole = p;
  if (!digits() || (zero && p - whole > 1)) return false;
  if (p != end && *p == '.') {
    ++p;
    if (!digits()) return false;
  }
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p != end && (*p == '+' || *p == '-')) ++p;
    if (!digits()) return false;
  }
  return p == end;
}

bool ends_word(char c) { return c == ',' || c == '}' || c == ']' || c == '"' || c == ':' || is_space(c); }

}  // namespace

std::size_t depth_of(const char* p, const char* end, std::size_t limit) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (; p < end; ++p) {
    if (*p == '"') {
      p = string_end(p + 1, end);
    } else if (*p == '{' || *p == '[') {
      deepest = std::max(deepest, ++depth);
      if (deepest > limit) return deepest;
    } else if (*p == '}' || *p == ']') {
      if (depth <= 1) return deepest;
      --depth;
    } else if (depth == 0 && !is_space(*p)) {
      return deepest;
    }
  }
  return deepest;
}

bool Mender::key_follows(const char* p) const {
  p = skip_space(p, end_);
  if (p == end_ || *p != '"') return false;
  const char* const limit = std::min(end_, p + kKeyReach);
  p = std::find(p + 1, limit, '"');
  if (p == limit) return false;
  p = skip_space(p + 1, end_);
  return p != end_ && *p == ':';
}

bool Mender::closes(const char* quote, Place place) const {
  const char* p = skip_space(quote + 1, end_);
  if (p == end_) return true;
  if (place == Place::key) return *p == ':';
  const char* const next = skip_space(p + 1, end_);
  const auto next_is = [&](std::string_view any) {
    return next == end_ || any.find(*next) != std::string_view::npos;
  };
  if (*p == ',') {
    if (place == Place::member) return next_is("}") || key_follows(next);
    return next_is("\"{[]-0123456789tfnNI");
  }
  if (*p == (place == Place::member ? '}' : ']')) return next_is(",}]");
  return false;
}

// Copies the escape at `p`, the backslash; returns behind what was copied.
const char* Mender::escape(const char* p, Place place, bool& closed) {
  const char* const next = p + 1;
  if (next == end_) {
    out_ += "\\\\";
    return next;
  }
  if (*next == '"' && !options_.trust_quotes && place != Place::key) {
    // A path that ends with a backslash, written without doubling it, takes the quote with it.
    const char* const after = skip_space(next + 1, end_);
    if (after != end_ && *after == ',' && key_follows(after + 1)) {
      ++structure;
      out_ += "\\\\";
      closed = true;
      return next;
    }
  }
  if (*next == 'u') {
    const std::string_view digits(next, static_cast<std::size_t>(std::min<std::ptrdiff_t>(end_ - next, 11)));
    // The whole pair is decoded at once, so that halves can be told.
    const Unescaped one = unescape(std::string("\\") + std::string(digits.substr(0, 5)));
    if (one.invalid_escape) {
      out_ += "\\\\";
      return next;
    }
    if (!one.lone_surrogate) {
      out_.append(p, 6);
      return p + 6;
    }
    if (digits.size() == 11 && digits[5] == '\\') {
      const Unescaped two = unescape(std::string("\\") + std::string(digits));
      if (!two.lone_surrogate && !two.invalid_escape) {
        out_.append(p, 12);
        return p + 12;
      }
    }
    out_ += "\\ufffd";
    return p + 6;
  }
  if (std::strchr("\"\\/bfnrt", *next) != nullptr && *next != '\0') {
    out_.append(p, 2);
    return p + 2;
  }
  out_ += "\\\\";
  return next;
}

// Copies the string whose text begins at `p`, its quotes included; returns behind it, null when it never
// ends.
const char* Mender::string(const char* p, Place place) {
  out_ += '"';
  while (p != end_) {
    const char c = *p;
    if (c == '"') {
      if (options_.trust_quotes || closes(p, place)) {
        out_ += '"';
        return p + 1;
      }
      ++structure;
      out_ += "\\\"";
      ++p;
    } else if (c == '\\') {
      bool closed = false;
      p = escape(p, place, closed);
      if (closed) {
        out_ += '"';
        return p + 1;
      }
    } else if (static_cast<unsigned char>(c) < 0x20) {
      ++control_characters;
      append_escaped(out_, static_cast<unsigned char>(c));
      ++p;
    } else if (static_cast<unsigned char>(c) < 0x80) {
      out_ += c;
      ++p;
    } else if (const std::size_t n = utf8_length(p, end_); n != 0) {
      out_.append(p, n);
      p += n;
    } else {
      ++invalid_bytes;
      append_utf8(out_, 0xFFFD);
      ++p;
    }
  }
  ended_in_string = true;
  return nullptr;
}

const char* Mender::word(const char* p) {
  const char* const begin = p;
  while (p != end_ && !ends_word(*p) && *p != '{' && *p != '[') ++p;
  if (p == begin) return nullptr;
  const std::string_view text(begin, static_cast<std::size_t>(p - begin));
  if (!options_.known_words) {
    out_ += text;
    return p;
  }
  const bool minus = text.front() == '-';
  const std::string_view bare = text.substr(minus || text.front() == '+' ? 1 : 0);
  if (text.size() <= kLongestNumber && is_number(text)) {
    out_ += text;
  } else if (same_word(text, "true") || same_word(text, "false") || same_word(text, "null")) {
    for (const char c : text) out_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  } else if (same_word(bare, "nan")) {
    out_ += "NaN";
  } else if (same_word(bare, "inf") || same_word(bare, "infinity")) {
    out_ += minus ? "-Infinity" : "Infinity";
  } else {
    out_ += '"';
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < 0x20) {
        append_escaped(out_, static_cast<unsigned char>(c));
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        append_utf8(out_, 0xFFFD);
      } else if (c == '\\') {
        out_ += "\\\\";
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }
  return p;
}

// Copies the value at `p` as a string of its text.
const char* Mender::as_text(const char* p) {
  const Scanned value = scan_value(p, end_);
  if (value.state != Scan::whole) return nullptr;
  out_ += '"';
  for (const char* at = p; at != value.end;) {
    if (*at == '"' || *at == '\\') {
      out_ += '\\';
      out_ += *at++;
    } else if (static_cast<unsigned char>(*at) < 0x20) {
      append_escaped(out_, static_cast<unsigned char>(*at++));
    } else if (const std::size_t n = utf8_length(at, value.end); n != 0) {
      out_.append(at, n);
      at += n;
    } else {
      append_utf8(out_, 0xFFFD);
      ++at;
    }
  }
  out_ += '"';
  return value.end;
}

const char* Mender::mend(const char* p, const char* end, const MendOptions& options) {
  out_.clear();
  nest_.clear();
  end_ = end;
  options_ = options;
  control_characters = invalid_bytes = structure = 0;
  ended_in_string = false;
  bool comma = false;      // one was read since the last value
  bool value_next = true;  // else a key, or a comma
  bool first = true;       // of the container
  for (;;) {
    p = skip_space(p, end_);
    if (p == end_) return nullptr;
    if (!nest_.empty() && (*p == '}' || *p == ']')) {
      if ((*p == '}') != object() || (object() && value_next)) return nullptr;
      if (comma) ++structure;
      out_ += *p++;
      nest_.pop_back();
      if (nest_.empty()) return p;
      comma = first = false;
      value_next = !object();
      continue;
    }
    if (*p == ',') {
      if (nest_.empty() || (object() && value_next)) return nullptr;
      if (comma || first) ++structure;
      comma = true;
      ++p;
      continue;
    }
    // A key or a value begins; in a list, or before a key, the comma belongs in front of it.
    const bool element = !nest_.empty() && (!object() || !value_next);
    if (element) {
      if (!first) out_ += ',';
      if (!first && !comma) ++structure;
      comma = first = false;
    }
    if (!nest_.empty() && object() && !value_next) {
      if (*p != '"') return nullptr;
      p = string(p + 1, Place::key);
      if (p == nullptr) return nullptr;
      p = skip_space(p, end_);
      if (p == end_ || *p != ':') return nullptr;
      out_ += ':';
      ++p;
      value_next = true;
      continue;
    }
    if (*p == '{' || *p == '[') {
      const bool limited = nest_.size() == 2 || (nest_.size() == 1 && *p == '[');
      if (options_.depth != 0 && limited && depth_of(p, end_, options_.depth) > options_.depth) {
        p = as_text(p);
        if (p == nullptr) return nullptr;
      } else {
        nest_.push_back(*p == '{' ? 1 : 0);
        out_ += *p++;
        comma = false;
        first = true;
        value_next = !object();
        continue;
      }
    } else if (*p == '"') {
      if (nest_.empty()) return nullptr;
      p = string(p + 1, object() ? Place::member : Place::item);
    } else {
      if (nest_.empty()) return nullptr;
      p = word(p);
    }
    if (p == nullptr) return nullptr;
    value_next = !object();
  }
}

}  // namespace torchtrt_viz::kineto
