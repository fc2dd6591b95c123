// Files that are whole or not there: written beside their place, synced, renamed.
#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

// Creates the directories above `path`. The message of a failure names the path and the system's reason.
TORCHTRT_VIZ_API void write_file(const std::string& path, std::string_view bytes);

// Throws unless the directory exists, or can be made, and files can be created in it.
TORCHTRT_VIZ_API void check_directory(const std::string& path);

}  // namespace torchtrt_viz
