#include "core/layers.hpp"

#include <utility>

#include "formats/io/json_text.hpp"

namespace torchtrt_viz {

void LayerTable::foretell(LayerInfo info) { foretold_.insert_or_assign(info.id, std::move(info)); }

bool LayerTable::is_whole(std::string_view id) const {
  const std::string key(id);
  if (const auto made = by_id_.find(key); made != by_id_.end()) {
    return rows_[static_cast<std::size_t>(made->second)].whole;
  }
  const auto known = foretold_.find(key);
  return known != foretold_.end() && known->second.whole;
}

std::int32_t LayerTable::row(std::string_view id, std::string_view name, std::string_view kernel) {
  std::string key(id);
  if (const auto found = by_id_.find(key); found != by_id_.end()) return found->second;
  LayerInfo info;
  if (auto known = foretold_.extract(key); !known.empty()) info = std::move(known.mapped());
  info.id = key;
  if (info.name.empty()) info.name = name;
  info.kernel = kernel;
  info.name_id = intern_name(info.id);
  JsonObject json(info.metadata);
  json.text("name", info.name).text("kernel", info.kernel);
  if (!info.op.empty()) json.text("op", info.op);
  if (!info.module.empty()) json.text("module", info.module);
  if (!info.nodes.empty()) json.texts("nodes", info.nodes);
  const auto row = static_cast<std::int32_t>(rows_.size());
  rows_.push_back(std::move(info));
  by_id_.emplace(std::move(key), row);
  return row;
}

}  // namespace torchtrt_viz
