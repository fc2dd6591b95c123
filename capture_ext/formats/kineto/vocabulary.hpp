// What categories and names mean: kind of work, and where its time is spent. The words come from the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace torchtrt_viz::kineto {

struct Meaning {
  std::uint8_t kind = 0;
  std::int8_t domain = -1;  // 0 host, 1 GPU, -1 not said by the category
};

// Gives events of one kind another one when their name says so.
struct NameRule {
  enum class How : std::uint8_t { equals, starts, contains };
  How how = How::equals;
  std::string text;
  std::uint8_t from = 0;
  std::uint8_t to = 0;
};

class Vocabulary {
 public:
  using Rules = std::uint32_t;  // one bit a rule

  std::unordered_map<std::string, Meaning> categories;
  std::vector<NameRule> rules;  // at most 32
  Meaning other;                // of unknown categories, and of events without one
  std::uint8_t step_kind = 0;   // kind of profiler steps

  [[nodiscard]] Meaning of_category(std::string_view category) const {
    const auto found = categories.find(std::string(category));
    return found == categories.end() ? other : found->second;
  }

  // The rules that a name meets.
  [[nodiscard]] Rules of_name(std::string_view name) const {
    Rules met = 0;
    for (std::size_t i = 0; i < rules.size() && i < 32; ++i) {
      if (meets(rules[i], name)) met |= Rules{1} << i;
    }
    return met;
  }

  [[nodiscard]] std::uint8_t kind(std::uint8_t kind, Rules met) const {
    for (; met != 0; met &= met - 1) {
      const NameRule& rule = rules[static_cast<std::size_t>(__builtin_ctz(met))];
      if (rule.from == kind) return rule.to;
    }
    return kind;
  }

 private:
  static bool meets(const NameRule& rule, std::string_view name) {
    switch (rule.how) {
      case NameRule::How::equals:
        return name == rule.text;
      case NameRule::How::starts:
        return name.starts_with(rule.text);
      case NameRule::How::contains:
        // What a function is called, not what it is called with: arguments and their types follow "(".
        return name.substr(0, name.find('(')).find(rule.text) != std::string_view::npos;
    }
    return false;
  }
};

}  // namespace torchtrt_viz::kineto
