// What sort of layer a layer is, and what can and cannot be known of it, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/engine/layer_name.hpp"

namespace torchtrt_viz::engine {

// As ROLES in torchtrt_viz/loaders/engine_info.py.
enum class Role : std::uint8_t { kCompute, kReformat, kShape, kSync, kConstant, kRegion, kUnknown };

// The recorded type decides; where only a name is recorded (empty type), a wrapper in the name may tell.
Role role_of(std::string_view layer_type, const LayerName& name, std::string_view text);

// What the file tells and does not tell about a fused or opaque layer; empty for a plain one.
std::string explain(Role role, const LayerName& name, const std::vector<std::string_view>& operators,
                    std::string_view layer_type);

}  // namespace torchtrt_viz::engine
