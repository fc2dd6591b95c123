// Protocol buffers on the wire, the few forms that our traces need: varints and length-delimited fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace torchtrt_viz::protobuf {

inline void varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(static_cast<unsigned char>(value | 0x80U));
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

inline void integer(std::string& out, std::uint32_t field, std::uint64_t value) {
  varint(out, static_cast<std::uint64_t>(field) << 3U);
  varint(out, value);
}

inline void bytes(std::string& out, std::uint32_t field, std::string_view value) {
  varint(out, static_cast<std::uint64_t>(field) << 3U | 2U);
  varint(out, value.size());
  out += value;
}

}  // namespace torchtrt_viz::protobuf
