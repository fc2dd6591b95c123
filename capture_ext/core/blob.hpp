// The blob of a TensorRTBackend delegate: what preprocess() writes and init() reads.
//
// All integers little-endian. The blob that Torch-TensorRT writes:
//
//   offset  size  field
//        0     4  magic           "TR01"; "TR02" when the metadata has a non-empty aliased_io
//        4     4  metadata_offset u32, 32
//        8     4  metadata_size   u32
//       12     4  engine_offset   u32, a multiple of 16
//       16     8  engine_size     u64
//       24     8  reserved        01 00 00 00 00 00 00 00
//       32        metadata        UTF-8 JSON, then zeros up to engine_offset
//   engine_offset engine          the payload
//
// The payload's first bytes say which engine runs it:
//
//   "TVHOST01"  the host engine. u64 size of the inner program at payload offset 8, the inner ExecuTorch
//               program (.pte) at payload offset 16; its method "forward" is the region.
//   otherwise   a serialized TensorRT plan ("ftrt" first, but that is not required).
//
// The metadata, one JSON object. Keys that are not listed are ignored.
//
//   io_bindings   [{"name": str, "dtype": str, "shape": [int, ...], "is_input": bool}, ...]: inputs in the
//   order
//                 of the delegate's arguments, then outputs in theirs. dtype as numpy writes it ("float32",
//                 "bool", ...) or "bfloat16", a leading "torch." is accepted; -1 in a shape is a dynamic
//                 dimension. May be absent or empty for the host engine, which then asks the inner program.
//   aliased_io    [{"output": int | str, "input": int | str, "kind": "kv_cache_update" | "user"}, ...]:
//   positions
//                 among outputs and inputs, or names of bindings. After each call the input's storage holds
//                 the output's value too.
//   torchtrt_viz  what this project adds, an object; absent in blobs of Torch-TensorRT:
//       "version"         1
//       "engine_runtime"  "host"
//       "engine_name"     name of the region, unique in the program; [A-Za-z0-9_.-]+, else those are replaced
//       "program_crc32"   int, optional: CRC-32 (as zlib has it) of the inner program. The runtime's
//       delegates
//                         do not check what they are given, and a damaged program would end the process
//       "stateful"        bool, default false: the inner program keeps state from call to call, so it must
//       not
//                         be set up anew when layers are switched on after loading
//       "layers"          [{"id": str, "name": str, "op": str, "nodes": [str, ...], "module": str, "whole":
//       bool},
//                         ...]: what is known ahead of time of layers, by id; all fields but "id" optional.
//                         "whole", for an id layer_%04d_delegate: report that call as one layer, because it
//                         is one operator of the graph, and not the parts that XNNPACK made of it
//
// Layer ids of the host engine, which the debug-handle map should list as string identifiers, "%04d" being
// the index of the instruction in the inner program's method:
//
//   layer_%04d_<op>     an operator: <op> is the kernel as the runtime names it without "native_call_", such
//   as
//                       "add.out" (an operator without a name of its own: "op")
//   layer_%04d_%03d     operator number %03d (from 000, in execution order) inside the XNNPACK call at that
//                       instruction
//   layer_%04d_rest     the time of a delegate's call at that instruction outside the operators that it
//   reports
//
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/tensor.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

inline constexpr char kHostPayloadMagic[] = "TVHOST01";
inline constexpr std::size_t kHostPayloadHeader = 16;

enum class PayloadKind : std::uint8_t { host, tensorrt };

struct BindingSpec {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;  // -1: dynamic
  bool is_input = true;
};

struct AliasSpec {
  std::size_t output = 0;  // position among the outputs
  std::size_t input = 0;   // position among the inputs
  std::string kind;
};

struct LayerSpec {
  std::string id;
  std::string name;
  std::string op;
  std::string module;
  std::vector<std::string> nodes;
  bool whole = false;
};

// A parsed blob. `payload` points into the bytes that were parsed; everything else is owned.
struct EngineBlob {
  int format = 1;  // 1: TR01, 2: TR02
  PayloadKind kind = PayloadKind::tensorrt;
  std::span<const std::byte> payload;  // the plan, or the inner program without its 16-byte header
  std::uint64_t content_hash = 0;      // of metadata and payload: equal content, equal hash, on every machine
  std::string metadata_json;
  std::string engine_name;
  bool stateful = false;
  std::int32_t device = 0;  // CUDA device index, of plans
  std::vector<BindingSpec> bindings;
  std::vector<AliasSpec> aliases;
  std::vector<LayerSpec> layers;
};

// Equal content, equal hash, on every machine.
TORCHTRT_VIZ_API std::uint64_t content_hash(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// Every offset and size is checked before it is used; a damaged blob gives a message that names the field,
// the value found and what was expected.
TORCHTRT_VIZ_API EngineBlob parse_blob(std::span<const std::byte> bytes);

}  // namespace torchtrt_viz
