// Layer profiles in trtexec's --exportProfile shape, which TREX reads: a count, then a row for each layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace torchtrt_viz {

struct LayerTotal {
  std::string name;
  std::int64_t total_ns = 0;
  std::optional<std::int64_t> median_ns;  // of one call
};

// [{"count": calls, "engine_runtime": runtime}, {"name", "timeMs" (total), "averageMs" (of one call),
// "medianMs", "percentage"}, ...]. Percentages are of the sum and null where the sum is 0, averages null
// where nothing was called; no row, no header: an empty list. The runtime is left out where it is empty, as
// trtexec has none.
std::string trex_profile(std::int64_t calls, std::span<const LayerTotal> layers,
                         std::string_view runtime = {});

}  // namespace torchtrt_viz
