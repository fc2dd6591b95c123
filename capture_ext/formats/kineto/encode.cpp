#include "formats/kineto/encode.hpp"

#include <unordered_map>
#include <utility>

#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

template <typename T>
Column<T> renumbered(const Column<std::uint32_t>& column, const std::vector<std::int32_t>& number_of) {
  Column<T> out;
  out.resize(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) {
    const std::uint32_t code = column[i];
    out[i] = code == Interner::kNone ? static_cast<T>(-1) : static_cast<T>(number_of[code]);
  }
  return out;
}

}  // namespace

Encoded encode(Column<std::uint32_t>&& column, const Interner& strings, const Column<std::int64_t>& places,
               Notes& notes) {
  constexpr std::int32_t kNew = -1;
  Encoded out;
  std::vector<std::int32_t> number_of(strings.size(), kNew);
  std::unordered_map<std::string, std::int32_t> known;  // two spellings may mean one text: "\/" and "/"
  for (std::size_t i = 0; i < column.size(); ++i) {
    const std::uint32_t code = column[i];
    if (code == Interner::kNone || number_of[code] != kNew) continue;
    Unescaped text = unescape(strings.text(code));
    const std::uint64_t at = places.empty() ? 0 : static_cast<std::uint64_t>(places[i]);
    if (text.invalid_escape) notes.add(Note::invalid_escape, at);
    if (text.lone_surrogate) notes.add(Note::lone_surrogate, at);
    const auto [entry, fresh] =
        known.try_emplace(text.text, static_cast<std::int32_t>(out.categories.size()));
    if (fresh) out.categories.push_back(std::move(text.text));
    number_of[code] = entry->second;
  }
  if (out.categories.size() < 127) {
    out.codes = renumbered<std::int8_t>(column, number_of);
  } else if (out.categories.size() < 32767) {
    out.codes = renumbered<std::int16_t>(column, number_of);
  } else {
    out.codes = renumbered<std::int32_t>(column, number_of);
  }
  column.clear();
  return out;
}

}  // namespace torchtrt_viz::kineto
