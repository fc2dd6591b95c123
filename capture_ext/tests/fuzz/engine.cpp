// libFuzzer harness of the reader of layer information and of layers' names.
//
// A short run is part of the test suite (tests/fuzz/test_fuzz_engine_files.py). For a long one:
//
//   clang++-14 -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I capture_ext
//     capture_ext/tests/fuzz/engine.cpp capture_ext/formats/engine/*.cpp capture_ext/formats/io/*.cpp
//     -isystem $SIMDJSON $SIMDJSON/simdjson.cpp -o fuzz_engine
//   mkdir -p seeds found && cp ../shared/cases/trex/*.graph.json seeds/
//   ./fuzz_engine -max_total_time=3600 -max_len=16384 -timeout=10 -rss_limit_mb=1024 found seeds
//
// (one line each). SIMDJSON is the folder of simdjson.h and simdjson.cpp, where pysimdjson is installed:
// `python -c 'import simdjson; print(*simdjson.__path__)'`.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/engine/graph.hpp"
#include "formats/engine/layer_name.hpp"
#include "formats/engine/tensor_type.hpp"

namespace engine = torchtrt_viz::engine;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// What the Python side relies on.
void check(const engine::Columns& c) {
  const std::size_t layers = c.name.size();
  const auto texts = static_cast<std::int32_t>(c.texts.values().size());
  const auto code = [&](std::int32_t value) { return value >= -1 && value < texts; };
  for (const auto* column : {&c.type, &c.precision, &c.weights_type, &c.tactic, &c.tactic_value}) {
    require(column->size() == layers);
    for (const std::int32_t value : *column) require(code(value));
  }
  require(c.module.size() == layers && c.explanation.size() == layers && c.role.size() == layers);
  require(c.profile.size() == layers && c.stream.size() == layers && c.attributes_end.size() == layers);
  require(c.first_operator.size() == layers + 1);
  require(c.first_operator.back() == static_cast<std::int64_t>(c.operators.size()));
  require(layers == 0 || c.attributes_end.back() == static_cast<std::int64_t>(c.attributes.size()));
  const std::size_t tensors = c.tensors.name.size();
  for (const auto* side : {&c.inputs, &c.outputs}) {
    require(side->first.size() == layers && side->bytes.size() == layers);
    for (std::size_t i = 0; i < layers; ++i) {
      require(static_cast<std::size_t>(side->first[i]) + static_cast<std::size_t>(side->count[i]) <= tensors);
      require(code(side->types[i]) && code(side->shapes[i]) && side->bytes[i] >= -1);
      require(c.role[i] <= 6 && c.profile[i] >= 0 && c.weights_bytes[i] >= -1 && c.weights_count[i] >= -1);
    }
  }
  for (std::size_t i = 0; i < tensors; ++i) {
    const engine::TensorColumns& t = c.tensors;
    require(code(t.type[i]) && code(t.format[i]) && code(t.location[i]) && t.bytes[i] >= -1);
    const auto end = static_cast<std::size_t>(t.first_size[i] < 0 ? 0 : t.first_size[i] + t.size_count[i]);
    require(end <= t.sizes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  engine::Columns columns;
  if (engine::read_layers(text, columns) == engine::Outcome::kLayers) check(columns);
  engine::LayerName name;
  engine::parse_name(text, name);
  const std::string module = name.module();
  require(module.empty() || module.front() == '/');
  (void)engine::onnx_layers(text);
  (void)engine::element_type(text);
  return 0;
}
