#include "formats/engine/layer_note.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace torchtrt_viz::engine {
namespace {

constexpr std::size_t kShown = 4;

constexpr std::array<std::pair<std::string_view, Role>, 12> kRoles = {{
    {"reformat", Role::kReformat},
    {"noop", Role::kShape},
    {"shape_call", Role::kShape},
    {"shapehosttodevice", Role::kShape},
    {"shapedevicetohost", Role::kShape},
    {"signal", Role::kSync},
    {"wait", Role::kSync},
    {"trainstation", Role::kSync},
    {"sync", Role::kSync},
    {"constant", Role::kConstant},
    {"foreignnode", Role::kRegion},
    {"myelin", Role::kRegion},
}};

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return out;
}

std::string list(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    if (i > 0) out += ", ";
    out += names[i];
  }
  if (names.size() > kShown) out += " and " + std::to_string(names.size() - kShown) + " more";
  return out;
}

}  // namespace

Role role_of(std::string_view layer_type, const LayerName& name, std::string_view text) {
  if (name.wrapper == Wrapper::kReformat) return Role::kReformat;
  if (!layer_type.empty()) {
    const std::string type = plain(layer_type);
    for (const auto& [known, role] : kRoles) {
      if (type == known) return role;
    }
    return name.wrapper == Wrapper::kRegion ? Role::kRegion : Role::kCompute;
  }
  switch (name.wrapper) {
    case Wrapper::kRegion:
      return Role::kRegion;
    case Wrapper::kCast:
      return Role::kReformat;
    case Wrapper::kHelper:
      return Role::kShape;
    default:
      break;
  }
  if (text.find("__mye") != std::string_view::npos) return Role::kShape;
  if (text.starts_with("[trainStation")) return Role::kSync;
  const bool computes = name.wrapper == Wrapper::kPointwise || name.wrapper == Wrapper::kMyelin;
  return computes ? Role::kCompute : Role::kUnknown;
}

std::string explain(Role role, const LayerName& name, const std::vector<std::string_view>& operators,
                    std::string_view layer_type) {
  if (role == Role::kRegion) {
    std::string ends;
    for (const Part& part : name.parts) {
      if (!ends.empty()) ends += " to ";
      ends += part.text;
    }
    if (ends.empty()) ends = "operators that it does not name";
    return "one region compiled as a whole, from " + ends +
           ": its time is that of everything inside, and this file does not say how it splits. An engine "
           "built "
           "with profilingVerbosity=detailed lists the kernels of a region (TensorRT 8.6 and later); kernels "
           "of "
           "a GPU trace match by tactic name";
  }
  if (role == Role::kReformat) {
    if (operators.empty()) return {};
    return "converts layout or precision for " + list(operators) + ": a cost of that layer's format";
  }
  if (role == Role::kSync)
    return "waits for another stream, subgraph or device: its time is waiting, not work";
  if (role == Role::kShape && name.wrapper == Wrapper::kMyelin) {
    return "computes shapes of a compiled region on the host or device";
  }
  const std::string type = plain(layer_type);
  if (name.wrapper == Wrapper::kMyelin || type == "kgen" || type == "fusion") {
    if (!operators.empty()) {
      return "one generated kernel made of " + std::to_string(operators.size()) +
             " recorded operators: " + list(operators);
    }
    std::string made = "one generated kernel";
    if (!name.shorthand.empty()) made.append(" (abbreviated ").append(name.shorthand).append(")");
    return made + ": the file records no operators for it";
  }
  if (operators.size() > 1) {
    return std::to_string(operators.size()) + " operators fused: their times cannot be told apart";
  }
  return {};
}

}  // namespace torchtrt_viz::engine
