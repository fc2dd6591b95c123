// Which of very many names contain a text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace torchtrt_viz {

// Name k is the bytes [offsets[k], offsets[k + 1]) of `texts`. Returns one byte per name: 1 where it contains
// `wanted`, which every name does when it is empty. Throws std::invalid_argument for offsets that fall, or
// that do not end within `texts`.
std::vector<std::uint8_t> names_with(std::string_view texts, std::span<const std::int64_t> offsets,
                                     std::string_view wanted);

}  // namespace torchtrt_viz
