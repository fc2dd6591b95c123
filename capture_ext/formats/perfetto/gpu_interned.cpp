#include "formats/perfetto/gpu_interned.hpp"

#include <array>
#include <string>
#include <utility>

#include "formats/perfetto/fields.hpp"

namespace torchtrt_viz::perfetto {
namespace {

// GpuCounterDescriptor.MeasureUnit, in its order.
constexpr std::array<const char*, 41> kUnits = {
    "",   "bit",  "kbit", "Mbit",   "Gbit",  "Tbit",      "Pbit",     "B",          "KB", "MB", "GB",
    "TB", "PB",   "Hz",   "kHz",    "MHz",   "GHz",       "THz",      "PHz",        "ns", "us", "ms",
    "s",  "min",  "h",    "vertex", "pixel", "triangle",  "mW",       "W",          "kW", "J",  "V",
    "A",  "degC", "degF", "K",      "%",     "primitive", "fragment", "instruction"};
constexpr std::size_t kMostUnits = 8;

void add_unit(std::uint64_t unit, char separator, std::size_t& count, std::string& out) {
  if (unit == 0 || ++count > kMostUnits) return;
  if (separator != '\0') out += separator;
  if (unit < kUnits.size()) {
    out += kUnits[unit];
  } else {
    out += "unit ";
    out += std::to_string(unit);
  }
}

GpuSpecification read_specification(Bytes message, Strings& strings, std::uint64_t& iid, bool& whole) {
  GpuSpecification out;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        iid = fields.value();
        break;
      case 2:
        out.name = strings.code(fields.text());
        break;
      case 3:
        out.description = strings.code(fields.text());
        break;
      case 4:
        out.category = static_cast<std::uint32_t>(fields.value());
        break;
      default:
        break;
    }
  }
  whole = !fields.damaged();
  return out;
}

GraphicsContext read_context(Bytes message, std::uint64_t& iid, bool& whole) {
  GraphicsContext out;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) iid = fields.value();
    if (fields.number() == 2) out.pid = static_cast<std::int32_t>(fields.value());
    if (fields.number() == 3) out.api = static_cast<std::uint32_t>(fields.value());
  }
  whole = !fields.damaged();
  return out;
}

IdMap<GpuCounterSpec> read_counters(Bytes message, Strings& strings, std::uint64_t& iid, bool& whole) {
  Bytes descriptor;
  std::optional<std::int32_t> gpu;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) iid = fields.value();
    if (fields.number() == 2) descriptor = fields.bytes();
    if (fields.number() == 3) gpu = static_cast<std::int32_t>(fields.value());
  }
  IdMap<GpuCounterSpec> out;
  whole = read_counter_specs(descriptor, gpu, strings, out) && !fields.damaged();
  return out;
}

ComputeKernel read_kernel(Bytes message, Strings& strings, std::uint64_t& iid, bool& whole) {
  ComputeKernel out;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        iid = fields.value();
        break;
      case 2:
        out.name = strings.code(fields.text());
        break;
      case 3:
        out.demangled = strings.code(fields.text());
        break;
      case 4:
        out.arch = strings.code(fields.text());
        break;
      case 5:
        out.attributes.push_back(fields.bytes());
        break;
      default:
        break;
    }
  }
  whole = !fields.damaged();
  return out;
}

}  // namespace

bool read_counter_specs(Bytes message, std::optional<std::int32_t> gpu, Strings& strings,
                        IdMap<GpuCounterSpec>& table) {
  Fields fields(message);
  bool whole = true;
  while (fields.next()) {
    if (fields.number() != 1) continue;
    GpuCounterSpec spec;
    spec.gpu = gpu;
    std::uint64_t id = 0;
    std::string above;
    std::string below;
    std::size_t units = 0;
    Fields entry(fields.bytes());
    while (entry.next()) {
      switch (entry.number()) {
        case 1:
          id = entry.value();
          break;
        case 2:
          spec.name = strings.code(entry.text());
          break;
        case 3:
          spec.description = strings.code(entry.text());
          break;
        case 7:
          entry.each([&](std::uint64_t unit) { add_unit(unit, above.empty() ? '\0' : '*', units, above); });
          break;
        case 8:
          entry.each([&](std::uint64_t unit) { add_unit(unit, '/', units, below); });
          break;
        default:
          break;
      }
    }
    if (entry.damaged()) {
      whole = false;
      continue;
    }
    if (above.empty() && !below.empty()) above = "1";
    if (above == "B" && below.empty()) above = "bytes";  // as CounterDescriptor's unit is called
    if (!above.empty()) spec.unit = strings.code(above + below);
    table.try_emplace(id, spec);
  }
  return whole && !fields.damaged();
}

bool InternedGpu::add(Bytes data, Strings& strings) {
  Fields fields(data);
  bool all = true;
  while (fields.next()) {
    std::uint64_t iid = 0;
    bool whole = true;
    switch (fields.number()) {
      case interned_field::kGraphicsContexts: {
        const GraphicsContext read = read_context(fields.bytes(), iid, whole);
        if (whole) contexts[iid] = read;
        break;
      }
      case interned_field::kGpuSpecifications: {
        const GpuSpecification read = read_specification(fields.bytes(), strings, iid, whole);
        if (whole) specifications[iid] = read;
        break;
      }
      case interned_field::kGpuCounters: {
        IdMap<GpuCounterSpec> read = read_counters(fields.bytes(), strings, iid, whole);
        if (whole) counters[iid] = std::move(read);
        break;
      }
      case interned_field::kComputeKernels: {
        ComputeKernel read = read_kernel(fields.bytes(), strings, iid, whole);
        if (whole) kernels[iid] = std::move(read);
        break;
      }
      case interned_field::kComputeArgumentNames: {
        std::int32_t name = kNone;
        Fields entry(fields.bytes());
        while (entry.next()) {
          if (entry.number() == 1) iid = entry.value();
          if (entry.number() == 2) name = strings.code(entry.text());
        }
        whole = !entry.damaged();
        if (whole) argument_names[iid] = name;
        break;
      }
      default:
        break;
    }
    all &= whole;
  }
  return all;
}

}  // namespace torchtrt_viz::perfetto
