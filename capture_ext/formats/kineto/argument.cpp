#include "formats/kineto/argument.hpp"

#include <cstddef>
#include <optional>

#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

constexpr std::size_t kDeepest = 64;

// Walks over JSON without judging numbers and words; what it cannot follow ends the walk.
class Walker {
 public:
  explicit Walker(std::string_view text) : p_(text.data()), end_(text.data() + text.size()) {}

  // The text between the quotes of the string at hand; nothing when it does not end, or needs unescaping
  // while `plain` text is asked for.
  std::optional<std::string_view> string(bool plain) {
    if (p_ == end_ || *p_ != '"') return std::nullopt;
    const char* const begin = ++p_;
    for (; p_ != end_; ++p_) {
      if (*p_ == '"') return std::string_view(begin, static_cast<std::size_t>(p_++ - begin));
      if (static_cast<unsigned char>(*p_) < 0x20) return std::nullopt;
      if (*p_ == '\\') {
        if (plain || ++p_ == end_) return std::nullopt;
      }
    }
    return std::nullopt;
  }

  // Whether the next token is `c`, which is then consumed.
  bool take(char c) {
    p_ = skip_space(p_, end_);
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }

  // Consumes a value; its tokens are added to `out` when that is given.
  bool value(std::string* out) {
    std::string open;
    do {
      p_ = skip_space(p_, end_);
      if (p_ == end_) return false;
      const char* const begin = p_;
      const char c = *p_;
      if (c == '{' || c == '[') {
        if (open.size() == kDeepest) return false;
        open += c;
        ++p_;
      } else if (c == '}' || c == ']') {
        if (open.empty() || open.back() != (c == '}' ? '{' : '[')) return false;
        open.pop_back();
        ++p_;
      } else if (c == ',' || c == ':') {
        if (open.empty()) return false;
        ++p_;
      } else if (c == '"') {
        if (!string(false)) return false;
      } else {
        while (p_ != end_ && is_word(*p_)) ++p_;
        if (p_ == begin) return false;
      }
      if (out != nullptr) out->append(begin, static_cast<std::size_t>(p_ - begin));
    } while (!open.empty());
    return true;
  }

  // Visits the members of the object at hand: `visit(key)` consumes the value and says whether to go on.
  template <typename Visit>
  bool members(Visit visit) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      p_ = skip_space(p_, end_);
      const auto key = string(true);
      if (!key || !take(':') || !visit(*key)) return false;
    } while (take(','));
    return take('}');
  }

 private:
  static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
  }

  const char* p_;
  const char* end_;
};

}  // namespace

Argument find_argument(std::string_view event, std::string_view key, std::string& value) {
  Walker walker(event);
  bool found = false;
  const bool clear = walker.members([&](std::string_view member) {
    if (member != "args") return walker.value(nullptr);
    found = false;  // of equal keys the last counts
    return walker.members([&](std::string_view argument) {
      if (argument != key) return walker.value(nullptr);
      value.clear();
      found = true;
      return walker.value(&value);
    });
  });
  if (!clear) return Argument::unclear;
  return found ? Argument::found : Argument::absent;
}

}  // namespace torchtrt_viz::kineto
