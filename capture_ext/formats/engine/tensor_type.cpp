#include "formats/engine/tensor_type.hpp"

#include <array>
#include <cctype>
#include <limits>
#include <utility>

namespace torchtrt_viz::engine {
namespace {

constexpr std::size_t kLongest = 256;

constexpr std::array kTypes = {
    ElementType{"FP64", 64},   ElementType{"FP32", 32},   ElementType{"FP16", 16},   ElementType{"BF16", 16},
    ElementType{"FP8", 8},     ElementType{"E8M0", 8},    ElementType{"FP4", 4},     ElementType{"INT64", 64},
    ElementType{"INT32", 32},  ElementType{"INT16", 16},  ElementType{"INT8", 8},    ElementType{"INT4", 4},
    ElementType{"UINT64", 64}, ElementType{"UINT32", 32}, ElementType{"UINT16", 16}, ElementType{"UINT8", 8},
    ElementType{"BOOL", 8},
};

// Other words, in lower case, for the same types.
constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kWords = {{
    {"float", "FP32"},        {"float32", "FP32"},    {"single", "FP32"},
    {"tf32", "FP32"},         {"double", "FP64"},     {"float64", "FP64"},
    {"half", "FP16"},         {"float16", "FP16"},    {"bfloat16", "BF16"},
    {"bfloat", "BF16"},       {"float8", "FP8"},      {"fp8e4m3", "FP8"},
    {"fp8e5m2", "FP8"},       {"e4m3", "FP8"},        {"e5m2", "FP8"},
    {"float8_e4m3fn", "FP8"}, {"float8_e5m2", "FP8"}, {"float8_e8m0fnu", "E8M0"},
    {"fp8e8m0", "E8M0"},      {"fp4e2m1", "FP4"},     {"float4", "FP4"},
    {"e2m1", "FP4"},          {"long", "INT64"},      {"int", "INT32"},
    {"byte", "UINT8"},        {"char", "INT8"},       {"float4_e2m1fn_x2", "FP4"},
}};

bool equal_ignoring_case(std::string_view word, std::string_view other) {
  if (word.size() != other.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(word[i])) !=
        std::tolower(static_cast<unsigned char>(other[i]))) {
      return false;
    }
  }
  return true;
}

ElementType of_word(std::string_view word) {
  for (const ElementType& type : kTypes) {
    if (equal_ignoring_case(word, type.name)) return type;
  }
  for (const auto& [spelling, name] : kWords) {
    if (!equal_ignoring_case(word, spelling)) continue;
    for (const ElementType& type : kTypes) {
      if (type.name == name) return type;
    }
  }
  return {};
}

bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::span<const ElementType> element_types() { return kTypes; }

ElementType element_type(std::string_view text) {
  text = text.substr(0, kLongest);
  for (std::size_t at = 0; at < text.size();) {
    if (!letter(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && word_char(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    ElementType type = of_word(word);
    // kHALF, as the C++ enumeration has it
    if (!type.known() && word.size() > 1 && (word[0] == 'k' || word[0] == 'K'))
      type = of_word(word.substr(1));
    if (type.known()) return type;
    at = end;
  }
  return {};
}

std::optional<std::int64_t> tensor_bytes(std::span<const std::int64_t> shape, ElementType type) {
  if (!type.known()) return std::nullopt;
  bool zero = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    zero |= size == 0;
  }
  if (zero) return 0;
  unsigned __int128 bits = type.bits;
  constexpr auto kMost = static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max()) * 8;
  for (const std::int64_t size : shape) {
    bits *= static_cast<std::uint64_t>(size);
    if (bits > kMost) return std::nullopt;
  }
  return static_cast<std::int64_t>((bits + 7) / 8);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (const std::int64_t size : shape) {
    if (!out.empty()) out.push_back('x');
    out += std::to_string(size);
  }
  return out;
}

}  // namespace torchtrt_viz::engine
