// How the spans of one track are laid out in lanes without overlap, and what the track looks like as one
// lane.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace torchtrt_viz {

inline constexpr std::int64_t kLastTime = std::numeric_limits<std::int64_t>::max();

struct Key {
  std::int64_t start;
  std::int64_t dur;
  std::uint32_t row;
};

// The order in which a span comes after whatever encloses it.
inline bool before(const Key& a, const Key& b) {
  if (a.start != b.start) return a.start < b.start;
  if (a.dur != b.dur) return a.dur > b.dur;
  return a.row < b.row;
}

// Assigns a lane to every span of one sorted track and returns how many there are. Flat tracks use the first
// lane that is free, the others put a span below what encloses it.
std::uint32_t lay_out(const std::vector<Key>& keys, bool flat, std::vector<std::uint32_t>& lane_of);

struct Cover {
  std::int64_t start;
  std::int64_t end;
  std::uint32_t row;  // of its longest span
  std::int64_t longest;
};

// The union of a sorted track's spans; spans that only touch stay apart. `cut` tells whether a span reaches
// beyond the one that it starts in: without that, the union is what lies on the outermost lane.
std::vector<Cover> unite(const std::vector<Key>& keys, bool& cut);

// From `from` to the later `to`; the whole clock does not fit into a signed number.
inline std::uint64_t between(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

}  // namespace torchtrt_viz
