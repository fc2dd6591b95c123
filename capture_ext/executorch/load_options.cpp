#include "executorch/load_options.hpp"

#include <cstring>
#include <string_view>

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

constexpr const char* kKeys[] = {kLevelKey, kFormatKey, kPathPrefixKey};

constexpr std::string_view kFamily = "torchtrt_profile_";

// A misspelt key would be ignored without a word.
Status check_key(std::string_view key, const std::string& value) {
  if (!is_profile_option(key)) return Status::success();
  for (const std::string_view known : kKeys) {
    if (key == known) return Status::success();
  }
  return Status::refused(std::string(key), value, "'" + value + "'",
                         std::string("there is no such option, only ") + kLevelKey + ", " + kFormatKey +
                             " and " + kPathPrefixKey);
}

Status take(std::string_view key, std::string_view value, OptionSet& out) {
  if (key == kLevelKey) {
    Level level{};
    auto status = parse_level(key, value, level);
    if (status.ok()) out.level = level;
    return status;
  }
  if (key == kFormatKey) {
    Format format{};
    auto status = parse_format(key, value, format);
    if (status.ok()) out.format = format;
    return status;
  }
  auto status = check_path_prefix(key, value);
  if (status.ok()) out.path_prefix = std::string(value);
  return status;
}

std::string value_text(const rt::BackendOption& option) {
  if (const auto* flag = std::get_if<bool>(&option.value)) return *flag ? "True" : "False";
  if (const auto* number = std::get_if<int>(&option.value)) return std::to_string(*number);
  const auto& text = std::get<std::array<char, rt::kMaxOptionValueLength>>(option.value);
  return {text.data(), ::strnlen(text.data(), text.size())};
}

}  // namespace

bool is_profile_option(std::string_view key) noexcept { return key.starts_with(kFamily); }

Status read_load_options(const rt::BackendInitContext& context, OptionSet& out) {
  for (const auto& option : context.runtime_specs()) {
    const auto value = value_text(option);
    if (auto status = check_key(option.key, value); !status.ok()) return status;
    for (const char* key : kKeys) {
      if (std::strcmp(option.key, key) != 0) continue;
      if (!std::holds_alternative<std::array<char, rt::kMaxOptionValueLength>>(option.value)) {
        return Status::refused(key, value, value + " (not a string)", "give a string");
      }
      if (auto status = take(key, value, out); !status.ok()) return status;
    }
  }
  return Status::success();
}

Status read_compile_specs(rt::ArrayRef<rt::CompileSpec> specs, OptionSet& out) {
  for (const auto& spec : specs) {
    if (spec.key == nullptr) continue;
    const std::string value(static_cast<const char*>(spec.value.buffer), spec.value.nbytes);
    if (auto status = check_key(spec.key, value); !status.ok()) return status;
    for (const char* key : kKeys) {
      if (std::strcmp(spec.key, key) != 0) continue;
      auto status = take(key, value, out);
      if (!status.ok()) {
        status.message += " (compile spec of the program)";
        return status;
      }
    }
  }
  return Status::success();
}

}  // namespace torchtrt_viz::et
