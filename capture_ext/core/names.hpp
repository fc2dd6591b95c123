// Names of spans as small numbers, the same for the whole process: recording one costs no string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/visibility.hpp"

namespace torchtrt_viz {

using NameId = std::uint32_t;

// Bounded by the number of distinct phases and layers that the process ever runs.
TORCHTRT_VIZ_API NameId intern_name(std::string_view name);
// The view stays valid for the life of the process.
TORCHTRT_VIZ_API std::string_view name_text(NameId id);

}  // namespace torchtrt_viz
