// Valid JSON out of text that is almost JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace torchtrt_viz::kineto {

struct MendOptions {
  // Strings end at their first quote that is not escaped. Otherwise a quote ends a string only where what
  // follows it can follow a string: for text with quotes that should have been escaped.
  bool trust_quotes = true;
  // Words that are no JSON become what Python's json module reads: NaN, Infinity, -Infinity, or a string.
  bool known_words = false;
  // Values of the object's members that nest deeper than this become their text. 0: no limit.
  std::size_t depth = 0;
};

class Mender {
 public:
  // Copies the object at `p` to `text()`. Returns where it ends, null when it cannot be mended. Control
  // characters are escaped, bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD, unknown
  // escapes keep their text, commas are dropped or filled in.
  const char* mend(const char* p, const char* end, const MendOptions& options);

  [[nodiscard]] std::string& text() { return out_; }

  // What the last call did.
  std::uint64_t control_characters = 0;
  std::uint64_t invalid_bytes = 0;
  std::uint64_t structure = 0;   // quotes and commas
  bool ended_in_string = false;  // it failed because a string does not end

 private:
  enum class Place : unsigned char { key, member, item };

  const char* string(const char* p, Place place);
  const char* escape(const char* p, Place place, bool& closed);
  const char* word(const char* p);
  const char* as_text(const char* p);
  [[nodiscard]] bool closes(const char* quote, Place place) const;
  [[nodiscard]] bool key_follows(const char* p) const;
  [[nodiscard]] bool object() const { return nest_.back() != 0; }

  std::string out_;
  std::vector<char> nest_;  // 1 for an object, 0 for a list
  const char* end_ = nullptr;
  MendOptions options_;
};

// How deep the containers of the value at `p` nest, counted up to `limit`.
std::size_t depth_of(const char* p, const char* end, std::size_t limit);

}  // namespace torchtrt_viz::kineto
