#include "core/blob.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "core/engine_registry.hpp"

namespace torchtrt_viz {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kHeaderSize = 32;
constexpr std::size_t kEngineAlignment = 16;
constexpr std::size_t kMostBindings = 4096;
constexpr std::size_t kMostLayers = 1U << 20U;

Error damaged(const std::string& what) {
  return Error(Code::invalid_program, "damaged TensorRTBackend blob: " + what);
}

std::string number(std::uint64_t value) { return std::to_string(value); }

template <typename T>
T little_endian(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(std::to_integer<T>(bytes[at + i])) << (8 * i);
  return value;
}

// Eight bytes at a time: an inner program may have hundreds of megabytes.
std::uint32_t crc32(std::span<const std::byte> bytes) {
  static const auto tables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? 0xEDB88320U ^ (crc >> 1U) : crc >> 1U;
      out[0][i] = crc;
    }
    for (std::size_t k = 1; k < 8; ++k) {
      for (std::size_t i = 0; i < 256; ++i) out[k][i] = out[0][out[k - 1][i] & 0xFFU] ^ (out[k - 1][i] >> 8U);
    }
    return out;
  }();
  std::uint32_t crc = ~0U;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const auto low = little_endian<std::uint32_t>(bytes, at) ^ crc;
    const auto high = little_endian<std::uint32_t>(bytes, at + 4);
    crc = tables[7][low & 0xFFU] ^ tables[6][low >> 8U & 0xFFU] ^ tables[5][low >> 16U & 0xFFU] ^
          tables[4][low >> 24U] ^ tables[3][high & 0xFFU] ^ tables[2][high >> 8U & 0xFFU] ^
          tables[1][high >> 16U & 0xFFU] ^ tables[0][high >> 24U];
  }
  for (; at < bytes.size(); ++at)
    crc = tables[0][(crc ^ std::to_integer<std::uint32_t>(bytes[at])) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

std::string text_of(const dom::object& object, const char* key) {
  std::string_view out;
  return object[key].get(out) == simdjson::SUCCESS ? std::string(out) : std::string();
}

BindingSpec read_binding(const dom::element& element, std::size_t i) {
  BindingSpec out;
  const std::string where = "io_bindings[" + number(i) + "]";
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) throw damaged(where + " is not an object");
  out.name = text_of(object, "name");
  std::string_view dtype;
  if (object["dtype"].get(dtype) != simdjson::SUCCESS) throw damaged(where + " has no dtype");
  const auto parsed = parse_dtype(dtype);
  if (!parsed)
    throw damaged(where + " has dtype '" + std::string(dtype.substr(0, 40)) + "', which is not known");
  out.dtype = *parsed;
  bool is_input = false;
  if (object["is_input"].get(is_input) != simdjson::SUCCESS) throw damaged(where + " has no is_input");
  out.is_input = is_input;
  dom::array shape;
  if (object["shape"].get(shape) != simdjson::SUCCESS) throw damaged(where + " has no shape");
  for (const auto size : shape) {
    std::int64_t value = 0;
    if (size.get(value) != simdjson::SUCCESS || value < -1 ||
        value > std::numeric_limits<std::int32_t>::max()) {
      throw damaged(where + " has a shape that is not a list of sizes (-1: dynamic)");
    }
    if (out.shape.size() == kMaxDims)
      throw damaged(where + " has more than " + number(kMaxDims) + " dimensions");
    out.shape.push_back(value);
  }
  return out;
}

// A position among the outputs or inputs, or a binding's name.
std::optional<std::size_t> find_binding(const dom::object& alias, const char* key, bool input,
                                        const std::vector<BindingSpec>& bindings) {
  std::uint64_t position = 0;
  if (alias[key].get(position) == simdjson::SUCCESS && position < kMostBindings) return position;
  std::string_view name;
  if (alias[key].get(name) != simdjson::SUCCESS) return std::nullopt;
  std::size_t i = 0;
  for (const auto& binding : bindings) {
    if (binding.is_input != input) continue;
    if (binding.name == name) return i;
    ++i;
  }
  return std::nullopt;
}

std::vector<LayerSpec> read_layers(const dom::array& array) {
  std::vector<LayerSpec> out;
  for (const auto element : array) {
    dom::object object;
    LayerSpec layer;
    if (out.size() >= kMostLayers || element.get(object) != simdjson::SUCCESS) {
      throw damaged("torchtrt_viz.layers is not a list of objects");
    }
    layer.id = text_of(object, "id");
    if (layer.id.empty()) throw damaged("torchtrt_viz.layers[" + number(out.size()) + "] has no id");
    layer.name = text_of(object, "name");
    layer.op = text_of(object, "op");
    layer.module = text_of(object, "module");
    bool whole = false;
    if (object["whole"].get(whole) == simdjson::SUCCESS) layer.whole = whole;
    dom::array nodes;
    if (object["nodes"].get(nodes) == simdjson::SUCCESS) {
      for (const auto node : nodes) {
        std::string_view name;
        if (node.get(name) == simdjson::SUCCESS) layer.nodes.emplace_back(name);
      }
    }
    out.push_back(std::move(layer));
  }
  return out;
}

void read_metadata(std::string_view text, EngineBlob& out, std::optional<std::uint32_t>& program_crc32) {
  dom::parser parser;
  dom::element root;
  dom::object object;
  if (const auto error = parser.parse(text.data(), text.size()).get(root); error != simdjson::SUCCESS) {
    throw damaged(std::string("its metadata is not JSON: ") + simdjson::error_message(error));
  }
  if (root.get(object) != simdjson::SUCCESS) throw damaged("its metadata is not a JSON object");
  dom::array array;
  if (object["io_bindings"].get(array) == simdjson::SUCCESS) {
    for (const auto element : array) {
      if (out.bindings.size() == kMostBindings)
        throw damaged("more than " + number(kMostBindings) + " io_bindings");
      out.bindings.push_back(read_binding(element, out.bindings.size()));
    }
  }
  if (object["aliased_io"].get(array) == simdjson::SUCCESS) {
    for (const auto element : array) {
      dom::object alias;
      const std::string where = "aliased_io[" + number(out.aliases.size()) + "]";
      if (element.get(alias) != simdjson::SUCCESS) throw damaged(where + " is not an object");
      const auto output = find_binding(alias, "output", false, out.bindings);
      const auto input = find_binding(alias, "input", true, out.bindings);
      if (!output || !input) throw damaged(where + " does not name an output and an input of io_bindings");
      out.aliases.push_back({*output, *input, text_of(alias, "kind")});
    }
  }
  std::int64_t device = 0;
  if (object["device_id"].get(device) == simdjson::SUCCESS) {
    if (device < 0 || device > 1023) {
      throw Error(Code::invalid_program, "the blob's metadata names device_id " + std::to_string(device) +
                                             ", expected the index of a CUDA device");
    }
    out.device = static_cast<std::int32_t>(device);
  }
  dom::object ours;
  if (object["torchtrt_viz"].get(ours) != simdjson::SUCCESS) return;
  out.engine_name = text_of(ours, "engine_name");
  std::uint64_t crc = 0;
  if (ours["program_crc32"].get(crc) == simdjson::SUCCESS) program_crc32 = static_cast<std::uint32_t>(crc);
  bool stateful = false;
  if (ours["stateful"].get(stateful) == simdjson::SUCCESS) out.stateful = stateful;
  if (ours["layers"].get(array) == simdjson::SUCCESS) out.layers = read_layers(array);
}

void read_payload(std::span<const std::byte> payload, EngineBlob& out) {
  constexpr std::size_t kMagicSize = sizeof kHostPayloadMagic - 1;
  const bool host =
      payload.size() >= kMagicSize && std::memcmp(payload.data(), kHostPayloadMagic, kMagicSize) == 0;
  if (!host) {
    out.kind = PayloadKind::tensorrt;
    out.payload = payload;
    return;
  }
  if (payload.size() < kHostPayloadHeader) {
    throw damaged("its host payload of " + number(payload.size()) + " bytes is shorter than its header");
  }
  const auto size = little_endian<std::uint64_t>(payload, kMagicSize);
  if (size > payload.size() - kHostPayloadHeader) {
    throw damaged("its inner program is " + number(size) + " bytes long, " +
                  number(payload.size() - kHostPayloadHeader) + " are there");
  }
  out.kind = PayloadKind::host;
  out.payload = payload.subspan(kHostPayloadHeader, size);
}

}  // namespace

// FNV-1a over 8 bytes at a time, with a final mix: fast enough for engines of gigabytes, equal everywhere.
std::uint64_t content_hash(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  std::uint64_t h = 0xcbf29ce484222325ULL ^ seed ^ (bytes.size() * kPrime);
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    h = (h ^ little_endian<std::uint64_t>(bytes, i)) * kPrime;
    h ^= h >> 29U;
  }
  for (; i < bytes.size(); ++i) h = (h ^ std::to_integer<std::uint64_t>(bytes[i])) * kPrime;
  h ^= h >> 32U;
  h *= 0xd6e8feb86659fd93ULL;
  return h ^ (h >> 32U);
}

EngineBlob parse_blob(std::span<const std::byte> bytes) {
  EngineBlob out;
  if (bytes.size() < kHeaderSize) {
    throw damaged("it has " + number(bytes.size()) + " bytes, its header alone has " + number(kHeaderSize));
  }
  const bool first = std::memcmp(bytes.data(), "TR01", 4) == 0;
  if (!first && std::memcmp(bytes.data(), "TR02", 4) != 0) {
    throw damaged(
        "it begins with neither TR01 nor TR02: was the program exported for another TensorRTBackend?");
  }
  out.format = first ? 1 : 2;
  const auto metadata_offset = little_endian<std::uint32_t>(bytes, 4);
  const auto metadata_size = little_endian<std::uint32_t>(bytes, 8);
  const auto engine_offset = little_endian<std::uint32_t>(bytes, 12);
  const auto engine_size = little_endian<std::uint64_t>(bytes, 16);
  // By subtraction throughout: a sum of hostile numbers wraps around.
  if (metadata_offset < kHeaderSize || metadata_offset > bytes.size() ||
      metadata_size > bytes.size() - metadata_offset) {
    throw damaged("metadata of " + number(metadata_size) + " bytes at " + number(metadata_offset) +
                  " does not lie inside the " + number(bytes.size()) + " bytes");
  }
  if (engine_offset < kHeaderSize || engine_offset % kEngineAlignment != 0 || engine_offset > bytes.size() ||
      engine_size > bytes.size() - engine_offset) {
    throw damaged("an engine of " + number(engine_size) + " bytes at " + number(engine_offset) +
                  " does not lie inside the " + number(bytes.size()) + " bytes, at a multiple of 16");
  }
  if (engine_offset < metadata_offset + std::uint64_t{metadata_size} &&
      metadata_offset < engine_offset + std::min<std::uint64_t>(engine_size, bytes.size())) {
    throw damaged("its metadata and its engine overlap");
  }
  if (engine_size == 0) throw damaged("its engine is empty");
  const auto metadata = bytes.subspan(metadata_offset, metadata_size);
  const auto engine = bytes.subspan(engine_offset, engine_size);
  out.metadata_json.assign(reinterpret_cast<const char*>(metadata.data()), metadata.size());
  std::optional<std::uint32_t> expected;
  read_metadata(out.metadata_json, out, expected);
  if (!first && out.aliases.empty()) throw damaged("it is a TR02 blob without aliased_io");
  read_payload(engine, out);
  if (out.kind == PayloadKind::host && expected && crc32(out.payload) != *expected) {
    throw damaged("its inner program is not the one that was exported (the CRC-32 differs)");
  }
  out.content_hash = content_hash(engine, content_hash(metadata));
  out.engine_name = out.engine_name.empty() ? "engine" : file_name_part(out.engine_name);
  return out;
}

}  // namespace torchtrt_viz
