// The text of JSON strings as UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace torchtrt_viz::kineto {

struct Unescaped {
  std::string text;             // valid UTF-8
  bool invalid_escape = false;  // an unknown escape was kept as it stands
  bool lone_surrogate = false;  // half of a surrogate pair became U+FFFD
};

// Resolves the escapes of what stands between the quotes of a JSON string.
Unescaped unescape(std::string_view raw);

// Length of the valid UTF-8 sequence at `p`, 0 when it is not valid.
std::size_t utf8_length(const char* p, const char* end);

void append_utf8(std::string& out, unsigned code_point);

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

template <typename Char>  // char or const char
Char* skip_space(Char* p, const char* end) {
  while (p != end && is_space(*p)) ++p;
  return p;
}

}  // namespace torchtrt_viz::kineto
