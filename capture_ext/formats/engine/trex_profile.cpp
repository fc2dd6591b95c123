#include "formats/engine/trex_profile.hpp"

#include <limits>

#include "formats/io/json_text.hpp"

namespace torchtrt_viz {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // written as null

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) / kNsPerMs; }

}  // namespace

std::string trex_profile(std::int64_t calls, std::span<const LayerTotal> layers, std::string_view runtime) {
  if (layers.empty()) return "[]\n";
  std::int64_t sum = 0;  // in whole ns: a float sum loses ticks on long runs
  for (const auto& layer : layers) sum += layer.total_ns;
  std::string out = "[\n  ";
  JsonObject header(out);
  header.integer("count", calls);
  if (!runtime.empty()) header.text("engine_runtime", runtime);
  header.close();
  for (const auto& layer : layers) {
    out += ",\n  ";
    const auto total = static_cast<double>(layer.total_ns);
    JsonObject row(out);
    row.text("name", layer.name)
        .number("timeMs", milliseconds(layer.total_ns))
        .number("averageMs", calls > 0 ? total / kNsPerMs / static_cast<double>(calls) : kNone);
    if (layer.median_ns) row.number("medianMs", milliseconds(*layer.median_ns));
    row.number("percentage", sum > 0 ? total / static_cast<double>(sum) * 100.0 : kNone).close();
  }
  out += "\n]\n";
  return out;
}

}  // namespace torchtrt_viz
