// Mixing of 64-bit words, and the seed that keeps hash tables out of the reach of crafted files.
#pragma once

#include <cstdint>
#include <random>

namespace torchtrt_viz {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product =
      static_cast<unsigned __int128>(a ^ 0x2D358DCCAA6C78A5ULL) * (b ^ 0x8BB84B93962EACC9ULL);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t process_seed() {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) ^ device();
  }();
  return seed;
}

}  // namespace torchtrt_viz
