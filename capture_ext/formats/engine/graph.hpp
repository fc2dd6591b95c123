// Layer information as columns: what `trtexec --exportLayerInfo` and the engine inspector write, TensorRT 8.2
// to 11.
//
// The document is {"Layers": [...], "Bindings": [...]}; TensorRT 11 has "I/O Tensors" in place of the
// bindings. A layer is an object when the engine was built with profilingVerbosity=detailed, else its name.
// Merged files are plain lists; a single layer may stand alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace torchtrt_viz::engine {

constexpr std::int64_t kMissing = -1;

// Short texts that repeat, by number. Ordered, so that no file can be made to collide.
class Texts {
 public:
  std::int32_t code(std::string_view text);
  [[nodiscard]] const std::vector<std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::int32_t, std::less<>> codes_;
  std::vector<std::string> values_;
};

// Columns of int32 are codes of Columns::texts unless said otherwise; -1 is missing.
struct TensorColumns {
  std::vector<std::string> name;
  std::vector<std::int32_t> type, format, location;
  std::vector<std::int64_t> first_size;  // in sizes; -1: no shape is recorded
  std::vector<std::int32_t> size_count;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> bytes;
};

// Inputs or outputs of the layers: rows first .. first + count of the tensors.
struct SideColumns {
  std::vector<std::int64_t> first;
  std::vector<std::int32_t> count;
  std::vector<std::int32_t> types, shapes;
  std::vector<std::int64_t> bytes;
};

struct Columns {
  Texts texts;
  std::vector<std::string> name;
  std::vector<std::int32_t> type, precision, weights_type, tactic_value;
  std::vector<std::uint8_t> role;
  std::vector<std::int32_t> profile;  // a number
  std::vector<std::int64_t> stream;   // a number, kMissing: not recorded (streams are 0 and up)
  std::vector<std::int64_t> weights_count, weights_bytes;
  std::vector<std::int32_t> tactic;
  std::vector<std::string> module, explanation;  // empty: none
  std::vector<std::string> operators;            // of all layers, one after the other
  std::vector<std::int64_t> first_operator;      // one more than layers
  std::string attributes;                        // JSON objects of what else the file records
  std::vector<std::int64_t> attributes_end;
  SideColumns inputs, outputs;
  TensorColumns tensors;
  std::string header;    // JSON object of what is beside the layers
  std::string bindings;  // JSON list
  std::uint64_t detailed = 0;
  std::uint64_t left_out = 0;  // entries that are no layers
};

enum class Outcome : std::uint8_t { kLayers, kNotJson, kNoLayers };

// Reads a whole document of strict JSON.
Outcome read_layers(std::string_view document, Columns& out);

}  // namespace torchtrt_viz::engine
