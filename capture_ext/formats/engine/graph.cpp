#include "formats/engine/graph.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>

#include "formats/engine/layer_name.hpp"
#include "formats/engine/layer_note.hpp"
#include "formats/engine/tensor_type.hpp"

namespace torchtrt_viz::engine {
namespace {

namespace dom = simdjson::dom;

constexpr std::int64_t kMostElements = std::int64_t{1} << 62;

// Text of a value: a string as it is, null nothing, anything else as JSON.
std::optional<std::string> text_of(const dom::element& value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  if (value.is_null()) return std::nullopt;
  return simdjson::minify(value);
}

// An integer as JSON writes it; a real number is none, however round.
std::optional<std::int64_t> integer_of(const dom::element& value) {
  std::int64_t number = 0;
  if (value.type() != dom::element_type::INT64 && value.type() != dom::element_type::UINT64)
    return std::nullopt;
  if (value.get(number) != simdjson::SUCCESS) return std::nullopt;
  return number;
}

void add_json_text(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20) {
      out.append("\\u00");
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

struct Weights {
  bool there = false;
  ElementType type;
  std::optional<std::int64_t> count;
};

class Reader {
 public:
  explicit Reader(Columns& out) : out_(out) { out_.first_operator.push_back(0); }

  Outcome document(const dom::element& root) {
    dom::array array;
    dom::object object;
    if (root.get(array) == simdjson::SUCCESS) {
      merged(array);
    } else if (root.get(object) != simdjson::SUCCESS || !single(root, object)) {
      return Outcome::kNoLayers;
    }
    if (out_.header.empty()) out_.header = "{}";
    if (out_.bindings.empty()) out_.bindings = "[]";
    settle_profiles();
    return Outcome::kLayers;
  }

 private:
  // A list of layers, of names, or of whole documents.
  void merged(const dom::array& array) {
    for (const dom::element item : array) {
      dom::object object;
      dom::array layers;
      if (item.get(object) == simdjson::SUCCESS && object["Layers"].get(layers) == simdjson::SUCCESS) {
        for (const dom::element layer : layers) add(layer);
        take_bindings(object);
      } else {
        add(item);
      }
    }
  }

  bool single(const dom::element& root, const dom::object& object) {
    dom::element layers;
    if (object["Layers"].get(layers) == simdjson::SUCCESS) {
      dom::array array;
      if (layers.get(array) != simdjson::SUCCESS) return false;
      for (const dom::element layer : array) add(layer);
      take_bindings(object);
      take_header(object);
      return true;
    }
    dom::element found;
    if (object["LayerType"].get(found) == simdjson::SUCCESS ||
        object["Name"].get(found) == simdjson::SUCCESS) {
      add(root);
      return true;
    }
    take_bindings(object);
    return !out_.bindings.empty();
  }

  void take_bindings(const dom::object& object) {
    for (const char* const key : {"I/O Tensors", "Bindings"}) {
      dom::array array;
      if (!out_.bindings.empty() || object[key].get(array) != simdjson::SUCCESS) continue;
      // an empty list of one form leaves the word to the other
      if (array.begin() != array.end() || std::string_view(key) == "Bindings")
        out_.bindings = simdjson::minify(array);
    }
  }

  void take_header(const dom::object& object) {
    std::string header = "{";
    for (const auto field : object) {
      if (field.key == "Layers" || field.key == "Bindings" || field.key == "I/O Tensors") continue;
      if (header.size() > 1) header.push_back(',');
      add_json_text(header, field.key);
      header.push_back(':');
      header += simdjson::minify(field.value);
    }
    out_.header = header + "}";
  }

  void add(const dom::element& item) {
    std::string_view name;
    dom::object object;
    if (item.get(name) == simdjson::SUCCESS) {
      add_layer(std::string(name), nullptr);
    } else if (item.get(object) == simdjson::SUCCESS && object.begin() != object.end()) {
      dom::element named;
      std::optional<std::string> text;
      if (object["Name"].get(named) == simdjson::SUCCESS) text = text_of(named);
      ++out_.detailed;
      add_layer(text.value_or(""), &object);
    } else {
      ++out_.left_out;
    }
  }

  void add_layer(std::string name, const dom::object* object) {
    parse_name(name, parsed_);
    std::optional<std::string> type;
    std::optional<std::string> tactic;
    std::optional<std::string> tactic_value;
    std::optional<std::int64_t> stream;
    std::string_view metadata;
    Weights weights, bias;
    std::optional<dom::element> inputs, outputs;
    std::string attributes = "{";
    if (object != nullptr) {
      for (const auto field : *object) {
        const std::string_view key = field.key;
        const dom::element value = field.value;
        bool own = true;
        if (key == "LayerType") {
          type = text_of(value);
        } else if (key == "Inputs") {
          inputs = value;
        } else if (key == "Outputs") {
          outputs = value;
        } else if (key == "TacticName") {
          tactic = text_of(value);
        } else if (key == "TacticValue") {
          tactic_value = text_of(value);
        } else if (key == "StreamId") {
          stream = integer_of(value);
        } else if (key != "Name") {
          own = false;
          if (key == "Metadata" && value.get(metadata) != simdjson::SUCCESS) metadata = {};
          if (key == "Weights" || key == "ConvWeights") read_weights(value, weights);
          if (key == "Bias" || key == "ConvBias") read_weights(value, bias);
        }
        if (own) continue;
        if (attributes.size() > 1) attributes.push_back(',');
        add_json_text(attributes, key);
        attributes.push_back(':');
        attributes += simdjson::minify(value);
      }
    }
    out_.attributes += attributes + "}";
    out_.attributes_end.push_back(static_cast<std::int64_t>(out_.attributes.size()));

    const std::int64_t first_input = static_cast<std::int64_t>(out_.tensors.name.size());
    add_side(inputs, out_.inputs);
    add_side(outputs, out_.outputs);
    out_.type.push_back(coded(type));
    out_.tactic.push_back(tactic && !tactic->empty() ? coded(tactic) : -1);
    out_.tactic_value.push_back(coded(tactic_value));
    const bool small = stream && *stream >= 0 && *stream <= std::numeric_limits<std::int32_t>::max();
    out_.stream.push_back(small ? *stream : kMissing);
    add_weights(weights, bias);
    std::int32_t precision = out_.weights_type.back();
    if (precision < 0 && out_.inputs.count.back() > 0) {
      precision = out_.tensors.type[static_cast<std::size_t>(first_input)];
    }
    out_.precision.push_back(precision);
    describe(name, type ? std::string_view(*type) : std::string_view(), metadata);
    out_.name.push_back(std::move(name));
  }

  // What the name and the metadata record.
  void describe(std::string_view name, std::string_view type, std::string_view metadata) {
    std::string module = parsed_.module();
    std::vector<std::string_view> operators;
    operators.reserve(parsed_.parts.size());
    for (const Part& part : parsed_.parts) operators.push_back(part.name());
    if (metadata.starts_with('{')) {
      host_metadata(metadata, module, operators);
    } else if (!metadata.empty()) {
      std::vector<std::string_view> nodes = onnx_layers(metadata);
      if (!nodes.empty()) {
        std::vector<std::string_view> modules;
        for (const std::string_view node : nodes) {
          if (node.starts_with('/')) modules.push_back(parent_path(node));
        }
        if (module.empty() && !modules.empty()) module = common_path(modules);
        operators = std::move(nodes);
      }
    }
    const Role role = role_of(type, parsed_, name);
    out_.role.push_back(static_cast<std::uint8_t>(role));
    out_.explanation.push_back(explain(role, parsed_, operators, type));
    out_.module.push_back(std::move(module));
    for (const std::string_view op : operators) out_.operators.emplace_back(op);
    out_.first_operator.push_back(static_cast<std::int64_t>(out_.operators.size()));
    own_profile_.push_back(parsed_.profile);
    region_.push_back(parsed_.myelin_graph);
  }

  // The host engine of this package records {"module": ..., "nodes": [...]}. The views lead into
  // host_parser_.
  void host_metadata(std::string_view metadata, std::string& module,
                     std::vector<std::string_view>& operators) {
    dom::object said;
    if (host_parser_.parse(metadata.data(), metadata.size()).get(said) != simdjson::SUCCESS) return;
    std::string_view path;
    if (said["module"].get(path) == simdjson::SUCCESS && !path.empty()) {
      module = path;
      if (module.front() != '/') {
        for (char& c : module) c = c == '.' ? '/' : c;
        module.insert(module.begin(), '/');
      }
    }
    dom::array nodes;
    if (said["nodes"].get(nodes) != simdjson::SUCCESS || nodes.begin() == nodes.end()) return;
    operators.clear();
    for (const dom::element node : nodes) {
      std::string_view text;
      if (node.get(text) == simdjson::SUCCESS) operators.push_back(text);
    }
  }

  void read_weights(const dom::element& value, Weights& out) {
    dom::object object;
    if (out.there || value.get(object) != simdjson::SUCCESS) return;
    out.there = true;
    std::string_view type;
    if (object["Type"].get(type) == simdjson::SUCCESS) out.type = element_type(type);
    dom::element count;
    if (object["Count"].get(count) == simdjson::SUCCESS) out.count = integer_of(count);
  }

  void add_weights(const Weights& weights, const Weights& bias) {
    std::int64_t count = kMissing;
    std::int64_t bytes = kMissing;
    bool unknown = false;
    for (const Weights* const held : {&weights, &bias}) {
      if (!held->there) continue;
      if (!held->count || *held->count < 0 || *held->count >= kMostElements) {
        unknown = true;
        continue;
      }
      const std::int64_t elements = *held->count;
      count = std::max<std::int64_t>(count, 0) + elements;
      const auto own = tensor_bytes(std::span(&elements, 1), held->type);
      unknown |= !own && elements > 0;
      const std::int64_t so_far = std::max<std::int64_t>(bytes, 0);
      unknown |= __builtin_add_overflow(so_far, own.value_or(0), &bytes);
    }
    out_.weights_type.push_back(weights.type.known() ? out_.texts.code(weights.type.name) : -1);
    out_.weights_count.push_back(count);
    out_.weights_bytes.push_back(unknown ? kMissing : bytes);
  }

  void add_side(const std::optional<dom::element>& value, SideColumns& side) {
    const std::size_t first = out_.tensors.name.size();
    side.first.push_back(static_cast<std::int64_t>(first));
    dom::array array;
    const bool listed = value && value->get(array) == simdjson::SUCCESS;
    if (listed) {
      for (const dom::element item : array) add_tensor(item);
    }
    const std::size_t end = out_.tensors.name.size();
    side.count.push_back(static_cast<std::int32_t>(end - first));
    summarise(first, end, listed, side);
  }

  void summarise(std::size_t first, std::size_t end, bool listed, SideColumns& side) {
    const TensorColumns& tensors = out_.tensors;
    if (end - first == 1) {  // nearly every layer
      side.types.push_back(tensors.type[first]);
      side.shapes.push_back(shape_code(first));
      side.bytes.push_back(tensors.bytes[first]);
      return;
    }
    std::string types;
    std::string shapes;
    std::vector<std::int32_t> seen;
    bool any = false;
    std::int64_t bytes = listed ? 0 : kMissing;
    for (std::size_t i = first; i < end; ++i) {
      if (std::find(seen.begin(), seen.end(), tensors.type[i]) == seen.end()) {
        seen.push_back(tensors.type[i]);
        if (!types.empty()) types += ", ";
        types += tensors.type[i] < 0 ? "?" : out_.texts.values()[static_cast<std::size_t>(tensors.type[i])];
        any |= tensors.type[i] >= 0;
      }
      const std::int32_t shape = shape_code(i);
      if (i > first) shapes += "; ";
      shapes += shape < 0 ? "?" : out_.texts.values()[static_cast<std::size_t>(shape)];
      if (bytes == kMissing) continue;
      const bool overflow =
          tensors.bytes[i] == kMissing || __builtin_add_overflow(bytes, tensors.bytes[i], &bytes);
      if (overflow) bytes = kMissing;
    }
    side.types.push_back(any ? out_.texts.code(types) : -1);
    side.shapes.push_back(end > first ? out_.texts.code(shapes) : -1);
    side.bytes.push_back(bytes);
  }

  std::int32_t shape_code(std::size_t row) {
    const TensorColumns& tensors = out_.tensors;
    if (tensors.first_size[row] < 0) return -1;
    return out_.texts.code(shape_text(shape_of(row)));
  }

  [[nodiscard]] std::span<const std::int64_t> shape_of(std::size_t row) const {
    const auto first = static_cast<std::size_t>(out_.tensors.first_size[row]);
    return {out_.tensors.sizes.data() + first, static_cast<std::size_t>(out_.tensors.size_count[row])};
  }

  void add_tensor(const dom::element& item) {
    TensorColumns& out = out_.tensors;
    std::string_view name;
    dom::object object;
    if (item.get(name) == simdjson::SUCCESS) {
      push_tensor(std::string(name), -1, -1, -1, kMissing, 0, kMissing);
      return;
    }
    if (item.get(object) != simdjson::SUCCESS) return;
    std::string text;
    std::optional<dom::element> both, format, type, old_type;
    std::int32_t location = -1;
    std::int64_t first = kMissing;
    for (const auto field : object) {
      const std::string_view key = field.key;
      if (key == "Name") {
        text = text_of(field.value).value_or("None");
      } else if (key == "Dimensions") {
        first = add_sizes(field.value);
      } else if (key == "Format/Datatype" && !field.value.is_null()) {
        both = field.value;
      } else if (key == "Format") {
        format = field.value;
      } else if (key == "Datatype") {
        type = field.value;
      } else if (key == "DataType") {
        old_type = field.value;
      } else if (key == "Location") {
        location = coded(text_of(field.value));
      }
    }
    const std::optional<dom::element> layout = both ? both : format;
    const std::optional<dom::element> described = both ? both : type ? type : old_type ? old_type : format;
    std::string_view layout_text;
    std::string_view type_text;
    ElementType element;
    if (described && described->get(type_text) == simdjson::SUCCESS) element = known_type(type_text);
    std::int32_t format_code = -1;
    if (layout && layout->get(layout_text) == simdjson::SUCCESS) format_code = out_.texts.code(layout_text);
    const auto count =
        static_cast<std::int32_t>(first < 0 ? 0 : static_cast<std::int64_t>(out.sizes.size()) - first);
    std::optional<std::int64_t> bytes;
    if (first >= 0) {
      bytes = tensor_bytes({out.sizes.data() + first, static_cast<std::size_t>(count)}, element);
    }
    push_tensor(std::move(text), element.known() ? out_.texts.code(element.name) : -1, format_code, location,
                first, count, bytes.value_or(kMissing));
  }

  void push_tensor(std::string name, std::int32_t type, std::int32_t format, std::int32_t location,
                   std::int64_t first, std::int32_t count, std::int64_t bytes) {
    TensorColumns& out = out_.tensors;
    out.name.push_back(std::move(name));
    out.type.push_back(type);
    out.format.push_back(format);
    out.location.push_back(location);
    out.first_size.push_back(first);
    out.size_count.push_back(count);
    out.bytes.push_back(bytes);
  }

  // Dimensions that are a list of integers; anything else is no shape.
  std::int64_t add_sizes(const dom::element& value) {
    std::vector<std::int64_t>& sizes = out_.tensors.sizes;
    const std::size_t first = sizes.size();
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return kMissing;
    for (const dom::element item : array) {
      const auto size = integer_of(item);
      if (!size) {
        sizes.resize(first);
        return kMissing;
      }
      sizes.push_back(*size);
    }
    return static_cast<std::int64_t>(first);
  }

  // Descriptions repeat: each is read once. Long ones are not kept.
  ElementType known_type(std::string_view text) {
    if (text.size() > 128) return element_type(text);
    const auto found = types_.find(text);
    if (found != types_.end()) return found->second;
    return types_.emplace(std::string(text), element_type(text)).first->second;
  }

  std::int32_t coded(const std::optional<std::string>& text) { return text ? out_.texts.code(*text) : -1; }

  // Names carry the optimisation profile as [profile N], save those of Myelin kernels: these have it in a
  // tensor's name, or share the number of their compiled region with a layer that has it.
  void settle_profiles() {
    const std::size_t layers = out_.name.size();
    out_.profile.assign(layers, 0);
    bool any = false;
    for (const auto& own : own_profile_) any |= own.has_value();
    if (!any) return;
    std::map<std::int32_t, std::int32_t> regions;
    for (std::size_t i = 0; i < layers; ++i) {
      for (const SideColumns* const side : {&out_.inputs, &out_.outputs}) {
        const auto first = static_cast<std::size_t>(side->first[i]);
        const std::size_t end = first + static_cast<std::size_t>(side->count[i]);
        for (std::size_t t = first; t < end && !own_profile_[i]; ++t) {
          const std::string& name = out_.tensors.name[t];
          if (name.find("[profile ") == std::string::npos) continue;
          parse_name(name, parsed_);
          own_profile_[i] = parsed_.profile;
        }
      }
      if (own_profile_[i] && region_[i]) regions.try_emplace(*region_[i], *own_profile_[i]);
    }
    for (std::size_t i = 0; i < layers; ++i) {
      if (own_profile_[i]) {
        out_.profile[i] = *own_profile_[i];
      } else if (region_[i]) {
        const auto found = regions.find(*region_[i]);
        if (found != regions.end()) out_.profile[i] = found->second;
      }
    }
  }

  Columns& out_;
  LayerName parsed_;
  dom::parser host_parser_;
  std::map<std::string, ElementType, std::less<>> types_;
  std::vector<std::optional<std::int32_t>> own_profile_, region_;
};

}  // namespace

std::int32_t Texts::code(std::string_view text) {
  const auto found = codes_.find(text);
  if (found != codes_.end()) return found->second;
  const auto code = static_cast<std::int32_t>(values_.size());
  values_.emplace_back(text);
  codes_.emplace(std::string(text), code);
  return code;
}

Outcome read_layers(std::string_view document, Columns& out) {
  dom::parser parser;
  dom::element root;
  if (parser.parse(document.data(), document.size()).get(root) != simdjson::SUCCESS) return Outcome::kNotJson;
  return Reader(out).document(root);
}

}  // namespace torchtrt_viz::engine
