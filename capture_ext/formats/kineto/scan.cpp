#include "formats/kineto/scan.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

// Keys that an event may begin with. Lists of other objects inside arguments rarely do.
constexpr std::array<std::string_view, 16> kFirstKeys{"ph",   "name",  "cat", "ts",   "pid", "tid",
                                                      "args", "id",    "dur", "s",    "bp",  "tts",
                                                      "tdur", "scope", "id2", "cname"};

bool is_scalar_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' ||
         c == '.' || c == '_' || c == '/' || c == '#' || c == '%';
}

// Containers that are open, one bit each: a list or an object.
class Nest {
 public:
  void open(bool object) {
    if (depth_ % 64 == 0 && depth_ / 64 == bits_.size()) bits_.push_back(0);
    const std::uint64_t bit = std::uint64_t{1} << (depth_ % 64);
    std::uint64_t& word = bits_[depth_ / 64];
    word = object ? word | bit : word & ~bit;
    ++depth_;
  }
  void close() { --depth_; }
  [[nodiscard]] bool empty() const { return depth_ == 0; }
  [[nodiscard]] bool in_object() const {
    return ((bits_[(depth_ - 1) / 64] >> ((depth_ - 1) % 64)) & 1) != 0;
  }

 private:
  std::vector<std::uint64_t> bits_;
  std::size_t depth_ = 0;
};

// Whether an element of a list ends before the comma at `comma` and an object with a likely first key
// follows.
bool is_boundary(const char* begin, const char* comma, const char* end) {
  const char* before = comma;
  while (before != begin && is_space(before[-1])) --before;
  if (before == begin || before[-1] != '}') return false;
  const char* after = skip_space(comma + 1, end);
  if (after == end || *after != '{') return false;
  after = skip_space(after + 1, end);
  if (after == end || *after != '"') return false;
  ++after;
  const std::string_view text(after, static_cast<std::size_t>(end - after));
  for (const std::string_view key : kFirstKeys) {
    if (text.size() <= key.size() || text[key.size()] != '"' || !text.starts_with(key)) continue;
    const char* const colon = skip_space(after + key.size() + 1, end);
    return colon != end && *colon == ':';
  }
  return false;
}

}  // namespace

const char* string_end(const char* p, const char* end) {
  while (p < end) {
    if (*p == '"') return p;
    p += *p == '\\' ? 2 : 1;
  }
  return end;
}

Scanned scan_value(const char* p, const char* end) {
  Nest nest;
  bool key_next = false;
  for (;;) {
    p = skip_space(p, end);
    if (p == end) return {Scan::incomplete, end};
    // Here a value, a key or, in a container that was just opened, its end.
    if (*p == '"') {
      p = string_end(p + 1, end);
      if (p == end) return {Scan::incomplete, end};
      ++p;
    } else if (key_next) {
      return {Scan::damaged, p};
    } else if (*p == '{' || *p == '[') {
      const bool object = *p == '{';
      nest.open(object);
      p = skip_space(p + 1, end);
      if (p == end) return {Scan::incomplete, end};
      if (*p != (object ? '}' : ']')) {
        key_next = object;
        continue;
      }
      nest.close();
      ++p;
    } else {
      const char* const word = p;
      while (p != end && is_scalar_char(*p)) ++p;
      if (p == end) return {Scan::incomplete, end};
      if (p == word) return {Scan::damaged, p};
    }
    if (key_next) {
      p = skip_space(p, end);
      if (p == end) return {Scan::incomplete, end};
      if (*p != ':') return {Scan::damaged, p};
      ++p;
      key_next = false;
      continue;
    }
    // A value has ended: close the containers that end with it.
    for (;;) {
      if (nest.empty()) return {Scan::whole, p};
      p = skip_space(p, end);
      if (p == end) return {Scan::incomplete, end};
      if (*p == ',') {
        ++p;
        key_next = nest.in_object();
        break;
      }
      if (*p != (nest.in_object() ? '}' : ']')) return {Scan::damaged, p};
      nest.close();
      ++p;
    }
  }
}

const char* last_boundary(const char* p, const char* end) {
  for (const char* at = end; at != p;) {
    at = static_cast<const char*>(memrchr(p, ',', static_cast<std::size_t>(at - p)));
    if (at == nullptr) return nullptr;
    if (is_boundary(p, at, end)) return at;
  }
  return nullptr;
}

const char* next_boundary(const char* p, const char* end) {
  for (const char* at = p; at != end; ++at) {
    at = static_cast<const char*>(std::memchr(at, ',', static_cast<std::size_t>(end - at)));
    if (at == nullptr) return nullptr;
    if (is_boundary(p, at, end)) return at;
  }
  return nullptr;
}

}  // namespace torchtrt_viz::kineto
