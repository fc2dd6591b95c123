// Texts of databases that keep them as UTF-16.
#pragma once

#include <string>
#include <string_view>

#include "formats/sqlite/bytes.hpp"

namespace torchtrt_viz::sqlite {

enum class Encoding : std::uint8_t { kUtf8 = 1, kUtf16Little = 2, kUtf16Big = 3 };

// UTF-8 of `bytes`; halves of surrogate pairs that stand alone become U+FFFD. Uses `scratch` where it has to.
std::string_view as_utf8(Bytes bytes, Encoding encoding, std::string& scratch);

}  // namespace torchtrt_viz::sqlite
