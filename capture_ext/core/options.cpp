#include "core/options.hpp"

#include <climits>

#include "core/config.hpp"

namespace torchtrt_viz {
namespace {

constexpr const char* kLevels[] = {"off", "delegate", "phases", "layers"};
constexpr const char* kFormats[] = {"etdump", "perfetto", "trex"};
constexpr const char* kSources[] = {"load_option", "process", "compile_spec", "default"};
constexpr std::size_t kLongestFileName = 255;

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

}  // namespace

const char* level_name(Level level) noexcept { return kLevels[static_cast<int>(level)]; }
const char* format_name(Format format) noexcept { return kFormats[static_cast<int>(format)]; }
const char* level_source_name(LevelSource source) noexcept { return kSources[static_cast<int>(source)]; }

Level parse_level(std::string_view key, std::string_view text) {
  for (int i = 0; i < 4; ++i) {
    if (text == kLevels[i]) return static_cast<Level>(i);
  }
  throw Error::refused(std::string(key), std::string(text), quoted(text),
                       "choose off, delegate, phases or layers");
}

Format parse_format(std::string_view key, std::string_view text) {
  for (int i = 0; i < 3; ++i) {
    if (text == kFormats[i]) return static_cast<Format>(i);
  }
  throw Error::refused(std::string(key), std::string(text), quoted(text), "choose etdump, perfetto or trex");
}

void check_path_prefix(std::string_view key, std::string_view text) {
  constexpr std::size_t kLongest = PATH_MAX - kLongestFileName - 2;
  if (text.empty()) {
    throw Error::refused(std::string(key), {}, "empty", "give the directory that the trace files go to");
  }
  if (text.find('\0') != std::string_view::npos) {
    throw Error::refused(std::string(key), std::string(text), quoted(text), "a path has no NUL byte");
  }
  if (text.size() > kLongest) {
    throw Error::refused(std::string(key), std::string(text),
                         "a path of " + std::to_string(text.size()) + " bytes",
                         "at most " + std::to_string(kLongest) + " bytes");
  }
}

Settings resolve(const OptionSet& load, const ProfileConfig& process, const OptionSet& specs) {
  Settings out;
  if (load.level) {
    out.level = *load.level;
    out.source = LevelSource::load_option;
  } else if (process.execution) {
    out.level = process.level;
    out.source = LevelSource::process;
  } else if (specs.level) {
    out.level = *specs.level;
    out.source = LevelSource::compile_spec;
  }
  if (load.format) {
    out.format = *load.format;
  } else if (process.execution) {
    out.format = process.format;
  } else if (specs.format) {
    out.format = *specs.format;
  }
  if (load.path_prefix) {
    out.path_prefix = *load.path_prefix;
  } else if (!process.execution && specs.path_prefix) {
    out.path_prefix = *specs.path_prefix;
  } else {
    out.path_prefix = process.path_prefix;
  }
  return out;
}

}  // namespace torchtrt_viz
