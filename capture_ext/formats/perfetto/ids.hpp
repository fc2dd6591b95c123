// Tables by ids that come from the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace torchtrt_viz::perfetto {

// The hash is seeded at random, so that ids cannot be made to fill one bucket.
struct IdHash {
  std::size_t operator()(std::uint64_t id) const noexcept;
};
template <typename Value>
using IdMap = std::unordered_map<std::uint64_t, Value, IdHash>;

}  // namespace torchtrt_viz::perfetto
