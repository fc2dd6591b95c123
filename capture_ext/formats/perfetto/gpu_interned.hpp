// What a sequence interns about GPUs: queues and stages, graphics contexts, kernels, counters.
//
// Messages: protos/perfetto/trace/gpu/gpu_render_stage_event.proto, gpu_counter_event.proto and
// gpu_interned_data.proto in google/perfetto.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/perfetto/ids.hpp"
#include "formats/perfetto/strings.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

struct GpuSpecification {  // a hardware queue or a stage of its work
  std::int32_t name = kNone;
  std::int32_t description = kNone;
  std::uint32_t category = 0;  // 0 other or not said, 1 graphics, 2 compute
};

struct GraphicsContext {
  std::int64_t pid = -1;
  std::uint32_t api = 0;
};

struct GpuCounterSpec {
  std::int32_t name = kNone;
  std::int32_t unit = kNone;
  std::int32_t description = kNone;
  std::optional<std::int32_t> gpu;
};

struct ComputeKernel {
  std::int32_t name = kNone;
  std::int32_t demangled = kNone;
  std::int32_t arch = kNone;
  std::vector<Bytes> attributes;  // of the trace's bytes, encoded ExtraComputeArg
};

struct InternedGpu {
  IdMap<GpuSpecification> specifications;
  IdMap<GraphicsContext> contexts;
  IdMap<IdMap<GpuCounterSpec>> counters;
  IdMap<ComputeKernel> kernels;
  IdMap<std::int32_t> argument_names;

  // Adds the entries of an InternedData message; false when one of them is damaged.
  bool add(Bytes data, Strings& strings);
};

// Adds the counters of a GpuCounterDescriptor; what `table` has already stays. False when it is damaged.
bool read_counter_specs(Bytes message, std::optional<std::int32_t> gpu, Strings& strings,
                        IdMap<GpuCounterSpec>& table);

}  // namespace torchtrt_viz::perfetto
