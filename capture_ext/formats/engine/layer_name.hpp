// What a layer's name says: the operators fused into it, where they are in the model, and what wraps them.
//
// TensorRT joins the names of fused layers with " + " and wraps them: PWN(...) around pointwise fusions,
// {ForeignNode[first...last]} around regions that another compiler took, "Reformatting CopyNode for Input
// Tensor 0 to X", reshape_before_X, X_myl5_2. Torch-TensorRT names each layer [KIND]-[target]-[module path];
// exporters to ONNX write the module path itself (/layer1/layer1.0/Conv).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace torchtrt_viz::engine {

// One operator inside a layer. `kind` is TensorRT's kind of layer and `target` the operator it came from
// (Torch-TensorRT names only); `path` is the module path with the operator's own name last. Empty: not
// recorded.
struct Part {
  std::string_view text;
  std::string_view kind;
  std::string_view target;
  std::string path;

  // Path of the module that holds the operator; "/" is the model itself.
  [[nodiscard]] std::string_view module() const;
  [[nodiscard]] std::string_view name() const { return target.empty() ? text : target; }
};

enum class Wrapper : std::uint8_t { kNone, kReformat, kCast, kHelper, kPointwise, kRegion, kMyelin };
std::string_view wrapper_name(Wrapper wrapper);

// The views lead into the text that was parsed (which `text` holds when it had to be changed).
struct LayerName {
  Wrapper wrapper = Wrapper::kNone;
  std::vector<Part> parts;  // of a region only the first and the last are recorded
  std::optional<std::int32_t> profile;
  std::optional<std::int32_t> myelin_graph;
  std::string_view shorthand;  // Myelin's abbreviation of the operators in a generated kernel
  std::string text;

  // Module path that the recorded parts have in common; empty when none records one. Of a region only the
  // ends are recorded, so both have to have a path.
  [[nodiscard]] std::string module() const;
};

// Any text is accepted.
void parse_name(std::string_view name, LayerName& out);

// Splits at separators (" + " or ", ") outside of brackets; a bracket that never closes takes the rest.
std::vector<std::string_view> split_fusion(std::string_view text, std::string_view separator = " + ");

// The longest path that begins all given ones, which are not empty; "/" at least.
std::string common_path(const std::vector<std::string_view>& paths);

// Path without its last step.
std::string_view parent_path(std::string_view path);

// ONNX nodes that a layer's Metadata lists, in order and each once. TensorRT separates them by 0x1E (fused
// layers) and 0x1F (inside Myelin kernels); logs drop both.
std::vector<std::string_view> onnx_layers(std::string_view metadata);

}  // namespace torchtrt_viz::engine
