#include "executorch/load_options.hpp"

#include <cstring>
#include <string_view>

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

constexpr const char* kKeys[] = {kLevelKey, kFormatKey, kPathPrefixKey};

constexpr std::string_view kFamily = "torchtrt_profile_";

// A misspelt key would be ignored without a word.
void check_key(std::string_view key, const std::string& value) {
  if (!is_profile_option(key)) return;
  for (const std::string_view known : kKeys) {
    if (key == known) return;
  }
  throw Error::refused(std::string(key), value, "'" + value + "'",
                       std::string("there is no such option, only ") + kLevelKey + ", " + kFormatKey +
                           " and " + kPathPrefixKey);
}

void take(std::string_view key, std::string_view value, OptionSet& out) {
  if (key == kLevelKey) {
    out.level = parse_level(key, value);
  } else if (key == kFormatKey) {
    out.format = parse_format(key, value);
  } else {
    check_path_prefix(key, value);
    out.path_prefix = std::string(value);
  }
}

std::string value_text(const rt::BackendOption& option) {
  if (const auto* flag = std::get_if<bool>(&option.value)) return *flag ? "True" : "False";
  if (const auto* number = std::get_if<int>(&option.value)) return std::to_string(*number);
  const auto& text = std::get<std::array<char, rt::kMaxOptionValueLength>>(option.value);
  return {text.data(), ::strnlen(text.data(), text.size())};
}

}  // namespace

bool is_profile_option(std::string_view key) noexcept { return key.starts_with(kFamily); }

OptionSet read_load_options(const rt::BackendInitContext& context) {
  OptionSet out;
  for (const auto& option : context.runtime_specs()) {
    const auto value = value_text(option);
    check_key(option.key, value);
    for (const char* key : kKeys) {
      if (std::strcmp(option.key, key) != 0) continue;
      if (!std::holds_alternative<std::array<char, rt::kMaxOptionValueLength>>(option.value)) {
        throw Error::refused(key, value, value + " (not a string)", "give a string");
      }
      take(key, value, out);
    }
  }
  return out;
}

OptionSet read_compile_specs(rt::ArrayRef<rt::CompileSpec> specs) {
  OptionSet out;
  for (const auto& spec : specs) {
    if (spec.key == nullptr) continue;
    const std::string value(static_cast<const char*>(spec.value.buffer), spec.value.nbytes);
    check_key(spec.key, value);
    for (const char* key : kKeys) {
      if (std::strcmp(spec.key, key) != 0) continue;
      try {
        take(key, value, out);
      } catch (const Error& failure) {
        throw failure.with_message(std::string(failure.what()) + " (compile spec of the program)");
      }
    }
  }
  return out;
}

}  // namespace torchtrt_viz::et
