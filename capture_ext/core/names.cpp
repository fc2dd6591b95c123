#include "core/names.hpp"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace torchtrt_viz {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::deque<std::string> texts;  // never moves what it holds
  std::unordered_map<std::string_view, NameId> ids;
};

// Never destroyed: views are handed out for the life of the process.
Table& table() {
  static Table* const instance = new Table;  // NOLINT
  return *instance;
}

}  // namespace

NameId intern_name(std::string_view name) {
  auto& names = table();
  {
    const std::shared_lock lock(names.mutex);
    if (const auto found = names.ids.find(name); found != names.ids.end()) return found->second;
  }
  const std::unique_lock lock(names.mutex);
  if (const auto found = names.ids.find(name); found != names.ids.end()) return found->second;
  const auto id = static_cast<NameId>(names.texts.size());
  const auto& text = names.texts.emplace_back(name);
  names.ids.emplace(text, id);
  return id;
}

std::string_view name_text(NameId id) {
  auto& names = table();
  const std::shared_lock lock(names.mutex);
  return id < names.texts.size() ? std::string_view(names.texts[id]) : std::string_view();
}

}  // namespace torchtrt_viz
