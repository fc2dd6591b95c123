// Profiling options: their keys, their values, and which of several sources wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

inline constexpr char kLevelKey[] = "torchtrt_profile_level";
inline constexpr char kFormatKey[] = "torchtrt_profile_format";
inline constexpr char kPathPrefixKey[] = "torchtrt_profile_path_prefix";

// Each level includes those before it.
enum class Level : std::uint8_t { off, delegate, phases, layers };
enum class Format : std::uint8_t { etdump, perfetto, trex };
// Where an engine's level came from, the strongest first.
enum class LevelSource : std::uint8_t { load_option, process, compile_spec, none };

TORCHTRT_VIZ_API const char* level_name(Level level) noexcept;
TORCHTRT_VIZ_API const char* format_name(Format format) noexcept;
TORCHTRT_VIZ_API const char* level_source_name(LevelSource source) noexcept;

// Refuse what cannot be; `key` is what the message calls the option.
TORCHTRT_VIZ_API Level parse_level(std::string_view key, std::string_view text);
TORCHTRT_VIZ_API Format parse_format(std::string_view key, std::string_view text);
TORCHTRT_VIZ_API void check_path_prefix(std::string_view key, std::string_view text);

// Options as one source gave them; what it did not give is empty.
struct OptionSet {
  std::optional<Level> level;
  std::optional<Format> format;
  std::optional<std::string> path_prefix;
};

struct ProfileConfig;

// What an engine does.
struct Settings {
  Level level = Level::off;
  LevelSource source = LevelSource::none;
  Format format = Format::etdump;
  std::string path_prefix;
};

// Load-time options win over the process-wide configuration (where it is switched on), that over the compile
// specs, those over "off": a program that was loaded with a level of its own keeps it, and every other engine
// follows the process-wide switch even after it was loaded.
TORCHTRT_VIZ_API Settings resolve(const OptionSet& load, const ProfileConfig& process,
                                  const OptionSet& specs);

}  // namespace torchtrt_viz
