// Spans of an engine's call: the call itself, its phases, its layers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/names.hpp"
#include "core/options.hpp"

namespace torchtrt_viz {

enum class SpanKind : std::uint8_t { delegate, phase, layer };

// How a span's times were got. Only `measured` has both ends from a clock.
enum class Timing : std::uint8_t {
  measured,
  laid_out,  // the duration was measured by the runtime that executed it, the position was not: end to end
  scaled,    // as laid_out, with durations scaled down to fit into the call that held them
  rest,      // what is left of a measured call outside the operators that it reported
  device,    // the duration is the device's own, the position on the host's clock is not known
};
inline constexpr std::array<std::string_view, 5> kTimingNames = {"measured", "laid_out", "scaled", "rest",
                                                                 "device"};

enum class Phase : std::uint8_t {
  delegate,  // the whole call
  input_binding,
  shape_inference,
  output_binding,
  enqueue_host,
  output_staging,
  synchronize,
};
inline constexpr std::array<const char*, 7> kPhaseNames = {
    "torchtrt.delegate",     "torchtrt.input_binding",  "torchtrt.shape_inference", "torchtrt.output_binding",
    "torchtrt.enqueue_host", "torchtrt.output_staging", "torchtrt.synchronize"};

// How long the device worked on a call, between two of its events around the enqueue. No phase of the host:
// its spans have on_device set, and what a call shows may be of an earlier one.
inline constexpr const char* kDeviceTimeName = "torchtrt.enqueue_gpu";

struct SpanRecord {
  std::int64_t start_ns = 0;  // core/clock.hpp
  std::int64_t end_ns = 0;
  std::uint64_t call = 0;
  NameId name = 0;
  std::int32_t layer = -1;  // row of the engine's layer table
  SpanKind kind = SpanKind::phase;
  Timing timing = Timing::measured;
  bool on_device = false;  // GPU time
};

// Spans that an engine has finished measuring: layers of this call, or, for an engine that works
// asynchronously, layers and device time of earlier ones. `call` says of which.
using SpanReports = std::vector<SpanRecord>;

}  // namespace torchtrt_viz
