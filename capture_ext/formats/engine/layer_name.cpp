#include "formats/engine/layer_name.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace torchtrt_viz::engine {
namespace {

constexpr int kMostWrappers = 32;
constexpr std::size_t kMostDigits = 9;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool word(char c) {
  return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), digit) - text.begin());
}

std::int32_t number(std::string_view digits) {
  std::int32_t value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

// " [profile 12]": fills the number of the first one, and returns the text without any.
std::string without_profiles(std::string_view name, std::optional<std::int32_t>& profile) {
  constexpr std::string_view kMark = "[profile ";
  std::string out;
  std::size_t at = 0;
  for (std::size_t mark = name.find(kMark); mark != std::string_view::npos;
       mark = name.find(kMark, mark + 1)) {
    const std::string_view rest = name.substr(mark + kMark.size());
    const std::size_t digits = count_digits(rest.substr(0, kMostDigits + 1));
    if (digits == 0 || digits > kMostDigits || rest.size() <= digits || rest[digits] != ']') continue;
    if (!profile) profile = number(rest.substr(0, digits));
    std::size_t end = mark;
    if (end > at && name[end - 1] == ' ') --end;
    out.append(name.substr(at, end - at));
    at = mark + kMark.size() + digits + 1;
  }
  return out.append(name.substr(at));
}

// "Reformatting CopyNode for Input Tensor 0 to X": leaves X.
bool take_reformat(std::string_view& name) {
  std::string_view rest = name;
  if (!take(rest, "Reformatting CopyNode for ")) return false;
  if (!take(rest, "Input ")) take(rest, "Output ");
  if (!take(rest, "Tensor ")) return false;
  rest.remove_prefix(count_digits(rest));
  take(rest, " ");
  if (!take(rest, "to ") && !take(rest, "from ")) return false;
  name = rest;
  return true;
}

// "Forced Cast ITensor T from DataType.HALF to DataType.FLOAT - op": gives op.
bool cast_operator(std::string_view name, std::string_view& op) {
  constexpr std::string_view kFrom = " from DataType.";
  if (!name.starts_with("Forced Cast ITensor ")) return false;
  for (std::size_t at = name.rfind(kFrom); at != std::string_view::npos && at > 0;
       at = name.rfind(kFrom, at - 1)) {
    std::string_view rest = name.substr(at + kFrom.size());
    std::size_t type = 0;
    while (type < rest.size() && word(rest[type])) ++type;
    rest.remove_prefix(type);
    if (type == 0 || !take(rest, " to DataType.")) continue;
    type = 0;
    while (type < rest.size() && word(rest[type])) ++type;
    rest.remove_prefix(type);
    if (type == 0 || !take(rest, " - ")) continue;
    op = rest;
    return true;
  }
  return false;
}

// reshape_before_X, copied_squeeze_after_X, unsqueeze_node_after_X, and dummy_shape_call of a shape
// computation.
std::size_t helper_prefix(std::string_view name) {
  std::string_view rest = name;
  if (take(rest, "dummy_shape_call")) {
    if (rest.starts_with("__mye")) return name.size() - rest.size();
    return rest.starts_with("___mye") ? name.size() - rest.size() + 1 : 0;
  }
  take(rest, "copied_");
  static constexpr std::array<std::string_view, 5> kHelpers = {"reshape", "squeeze", "unsqueeze", "transpose",
                                                               "shuffle"};
  bool found = false;
  for (const std::string_view helper : kHelpers) {
    if (!found && take(rest, helper)) found = true;
  }
  if (!found) return 0;
  take(rest, "_node");
  if (!take(rest, "_before_") && !take(rest, "_after_")) return 0;
  return name.size() - rest.size();
}

// X_myl5_2: the size of X, npos when there is no such end.
std::size_t myelin_suffix(std::string_view name, std::int32_t& graph) {
  const std::size_t at = name.rfind("_myl");
  if (at == std::string_view::npos) return at;
  const std::string_view rest = name.substr(at + 4);
  const std::size_t digits = count_digits(rest);
  if (digits == 0 || digits > kMostDigits || rest.size() <= digits + 1 || rest[digits] != '_') {
    return std::string_view::npos;
  }
  if (count_digits(rest.substr(digits + 1)) != rest.size() - digits - 1) return std::string_view::npos;
  graph = number(rest.substr(0, digits));
  return at;
}

// __myl_MaxrSubExpSum or __mye622_0: the name of a generated kernel without its suffix.
bool generated_kernel(std::string_view body, std::string_view& shorthand) {
  if (take(body, "__myl_")) {
    if (!std::all_of(body.begin(), body.end(), word)) return false;
    shorthand = body;
    return true;
  }
  if (!take(body, "__mye")) return false;
  const std::size_t first = count_digits(body);
  if (first == 0 || body.size() <= first + 1 || body[first] != '_') return false;
  return count_digits(body.substr(first + 1)) == body.size() - first - 1;
}

// Paths begin with "/"; Torch-TensorRT writes __/x for operators of the model itself.
std::string clean_path(std::string_view path) {
  if (path.empty()) return {};
  if (path.starts_with("__/")) path.remove_prefix(2);
  std::string out(path);
  if (out.front() != '/') out.insert(out.begin(), '/');
  return out;
}

// Whether an ONNX node's name is a module path: /Flatten, or two steps at least; not read:0.
bool is_path(std::string_view text) {
  if (text.find_first_of(" \t()[]{}+,:") != std::string_view::npos) return false;
  if (text.starts_with('/')) return true;
  const std::size_t last = text.find_last_not_of('/');
  return last != std::string_view::npos && text.substr(0, last + 1).find('/') != std::string_view::npos;
}

// Reads "[content]" and moves behind it; the content has no brackets.
bool take_bracket(std::string_view& text, std::string_view& content) {
  if (!text.starts_with('[')) return false;
  const std::size_t end = text.find_first_of("[]", 1);
  if (end == std::string_view::npos || text[end] != ']') return false;
  content = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return true;
}

bool is_kind(std::string_view text, bool capitals_only) {
  if (text.empty()) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    if (digit(c) || c == '_' || (c >= 'A' && c <= 'Z')) return true;
    return !capitals_only && (c == ' ' || (c >= 'a' && c <= 'z'));
  });
}

// [KIND]-[target]-[path], the path optional, at the beginning of the text.
bool take_torchtrt(std::string_view& text, Part& part) {
  std::string_view rest = text;
  std::string_view kind;
  std::string_view target;
  if (!take_bracket(rest, kind) || !is_kind(kind, false) || !take(rest, "-")) return false;
  if (!take_bracket(rest, target)) return false;
  std::string_view path;
  std::string_view further = rest;
  if (take(further, "-") && take_bracket(further, path)) rest = further;
  part.kind = kind;
  part.target = target;
  part.path = clean_path(path);
  text = rest;
  return true;
}

// Myelin writes underscores for hyphens and dots: [MATRIX_MULTIPLY]_[aten_ops_addmm_default]_[/x/y]
bool is_mangled(std::string_view text, Part& part) {
  std::string_view kind;
  std::string_view target;
  std::string_view path;
  if (!take_bracket(text, kind) || !is_kind(kind, true) || !take(text, "_")) return false;
  if (!take_bracket(text, target) || !take(text, "_") || !take_bracket(text, path) || !text.empty())
    return false;
  part.kind = kind;
  part.target = target;
  part.path = clean_path(path);
  return true;
}

Part make_part(std::string_view text) {
  Part part;
  part.text = text;
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    std::string_view rest = text.substr(at);
    if (take_torchtrt(rest, part)) return part;
  }
  if (is_mangled(text, part)) return part;
  const std::string_view bare = text.substr(helper_prefix(text));
  if (is_path(bare)) part.path = clean_path(bare);
  return part;
}

// Parts of one fused element, which may itself be a pointwise fusion, nested as deep as is plausible.
void add_parts(std::string_view text, std::vector<Part>& out, int depth = 0) {
  if (depth >= kMostWrappers || !text.starts_with("PWN(") || !text.ends_with(')') || text.size() < 5) {
    out.push_back(make_part(text));
    return;
  }
  for (const std::string_view argument : split_fusion(text.substr(4, text.size() - 5), ", ")) {
    for (const std::string_view piece : split_fusion(argument)) add_parts(piece, out, depth + 1);
  }
}

// First and last name of a region, "first...last". Names may end in dots themselves (x.weight.../softmax):
// the separator is the last three dots of the first run of them outside of brackets.
void add_ends(std::string_view text, std::vector<Part>& out) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (c == ']' || c == ')' || c == '}') depth = std::max(depth - 1, 0);
    if (c != '.') {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && text[end] == '.') ++end;
    if (end - at >= 3 && depth == 0) {
      if (end > 3) out.push_back(make_part(text.substr(0, end - 3)));
      if (end < text.size()) out.push_back(make_part(text.substr(end)));
      return;
    }
    at = end;
  }
  out.push_back(make_part(text));
}

}  // namespace

std::string_view wrapper_name(Wrapper wrapper) {
  static constexpr std::array<std::string_view, 7> kNames = {"",          "reformat", "cast",  "helper",
                                                             "pointwise", "region",   "myelin"};
  return kNames[static_cast<std::size_t>(wrapper)];
}

std::string_view Part::module() const { return path.empty() ? std::string_view() : parent_path(path); }

std::string_view parent_path(std::string_view path) {
  const std::size_t last = path.rfind('/');
  if (last == std::string_view::npos || last == 0) return "/";
  return path.substr(0, last);
}

std::string common_path(const std::vector<std::string_view>& paths) {
  std::string_view common = paths.front();
  while (common.ends_with('/')) common.remove_suffix(1);
  for (const std::string_view path : paths) {
    std::size_t same = 0;   // bytes that are equal
    std::size_t whole = 0;  // of them, up to the end of a step
    while (same < common.size() && same < path.size() && common[same] == path[same]) {
      if (common[same] == '/') whole = same;
      ++same;
    }
    const bool ends_here = same == common.size() && (same == path.size() || path[same] == '/');
    const bool ends_there = same == path.size() && same < common.size() && common[same] == '/';
    if (!ends_here) common = common.substr(0, ends_there ? same : whole);
  }
  return common.empty() ? "/" : std::string(common);
}

std::string LayerName::module() const {
  std::vector<std::string_view> modules;
  for (const Part& part : parts) {
    if (!part.path.empty()) {
      modules.push_back(part.module());
    } else if (wrapper == Wrapper::kRegion) {
      return {};
    }
  }
  return modules.empty() ? std::string() : common_path(modules);
}

std::vector<std::string_view> split_fusion(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    if (end > begin) out.push_back(text.substr(begin, end - begin));
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      depth = std::max(depth - 1, 0);
    } else if (c == separator.front() && text.substr(at).starts_with(separator)) {
      if (depth == 0) {
        add(at);
        begin = at + separator.size();
      }
      at += separator.size();
      continue;
    }
    ++at;
  }
  if (begin == 0) return {text};
  add(text.size());
  return out;
}

std::vector<std::string_view> onnx_layers(std::string_view metadata) {
  constexpr std::string_view kHead = "[ONNX Layer: ";
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  std::vector<std::string_view> out;
  std::unordered_set<std::string_view> seen;
  const auto add = [&](std::string_view piece) {
    const std::size_t first = piece.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return;
    piece = piece.substr(first, piece.find_last_not_of(kBlank) - first + 1);
    if (piece.starts_with(kHead) && piece.ends_with(']'))
      piece = piece.substr(kHead.size(), piece.size() - kHead.size() - 1);
    if (!piece.empty() && seen.insert(piece).second) out.push_back(piece);
  };
  std::size_t begin = 0;
  for (std::size_t at = 0; at < metadata.size(); ++at) {
    const bool separator = metadata[at] == '\x1e' || metadata[at] == '\x1f';
    const bool joint =
        at > 0 && metadata[at] == '[' && metadata[at - 1] == ']' && metadata.substr(at).starts_with(kHead);
    if (!separator && !joint) continue;
    add(metadata.substr(begin, at - begin));
    begin = separator ? at + 1 : at;
  }
  add(metadata.substr(begin));
  return out;
}

void parse_name(std::string_view name, LayerName& out) {
  out.wrapper = Wrapper::kNone;
  out.parts.clear();
  out.profile.reset();
  out.myelin_graph.reset();
  out.shorthand = {};
  if (name.find("[profile ") != std::string_view::npos) {
    out.text = without_profiles(name, out.profile);
    name = out.text;
  }
  std::string_view op;
  for (int i = 0; i < kMostWrappers; ++i) {
    if (take_reformat(name)) {
      if (out.wrapper == Wrapper::kNone) out.wrapper = Wrapper::kReformat;
    } else if (cast_operator(name, op)) {
      out.wrapper = Wrapper::kCast;
      Part part;
      part.text = op;
      std::string_view rest = op;
      std::string_view target;
      if (take_bracket(rest, target)) {
        std::string_view path;
        part.kind = "CAST";
        part.target = target;
        if (take(rest, "-") && take_bracket(rest, path)) part.path = clean_path(path);
      }
      out.parts.push_back(std::move(part));
      return;
    } else if (const std::size_t helper = helper_prefix(name); helper > 0 && helper < name.size()) {
      if (out.wrapper == Wrapper::kNone) out.wrapper = Wrapper::kHelper;
      name.remove_prefix(helper);
    } else {
      if (name.starts_with("PWN(") && name.ends_with(')') && split_fusion(name).size() == 1 &&
          out.wrapper == Wrapper::kNone) {
        out.wrapper = Wrapper::kPointwise;
      }
      break;
    }
  }
  std::int32_t graph = 0;
  if (const std::size_t end = myelin_suffix(name, graph); end != std::string_view::npos) {
    out.myelin_graph = graph;
    name = name.substr(0, end);
    if (out.wrapper == Wrapper::kNone) out.wrapper = Wrapper::kMyelin;
    if (generated_kernel(name, out.shorthand)) return;
  }
  constexpr std::string_view kRegionHead = "{ForeignNode[";
  if (name.starts_with(kRegionHead) && name.ends_with("]}")) {
    if (out.wrapper == Wrapper::kNone) out.wrapper = Wrapper::kRegion;
    add_ends(name.substr(kRegionHead.size(), name.size() - kRegionHead.size() - 2), out.parts);
    return;
  }
  for (const std::string_view element : split_fusion(name)) add_parts(element, out.parts);
}

}  // namespace torchtrt_viz::engine
