// The layers of an engine: one row each, whatever the number of calls. Duplicate names stay apart by id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/names.hpp"
#include "core/span.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

struct LayerInfo {
  std::string id;    // stable, unique in the engine; the event's identifier in an ETDump
  std::string name;  // what people read; may occur twice
  std::string op;
  std::string kernel;  // what the runtime itself calls it
  std::string module;
  std::vector<std::string> nodes;  // of the exported graph, where that was recorded
  bool whole = false;              // one layer, whatever the runtime makes of it
  NameId name_id = 0;              // of `id`
  std::string metadata;            // JSON object for the event, without its closing brace
};

// Used under the owning engine's mutex.
class TORCHTRT_VIZ_API LayerTable {
 public:
  // What is known ahead of time; found again by id.
  void foretell(LayerInfo info);
  // The row of layer `id`, made on first sight from what was foretold, else from `name` and `kernel`.
  std::int32_t row(std::string_view id, std::string_view name, std::string_view kernel);
  // Whether `id` was foretold as one layer whatever its parts.
  bool is_whole(std::string_view id) const;
  const LayerInfo& operator[](std::int32_t row) const { return rows_[static_cast<std::size_t>(row)]; }
  const std::vector<LayerInfo>& rows() const noexcept { return rows_; }

 private:
  std::vector<LayerInfo> rows_;
  std::unordered_map<std::string, std::int32_t> by_id_;
  std::unordered_map<std::string, LayerInfo> foretold_;
};

}  // namespace torchtrt_viz
