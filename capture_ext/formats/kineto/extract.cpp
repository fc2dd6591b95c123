#include "formats/kineto/extract.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/kineto/scan.hpp"
#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

namespace ondemand = simdjson::ondemand;

// Whether the key that begins at `key` is `literal`. Buffers are padded, so that reading behind is safe.
template <std::size_t N>
bool is(const char* key, const char (&literal)[N]) {
  return std::memcmp(key, literal, N - 1) == 0 && key[N - 1] == '"';
}

// A token reaches to the next one; this cuts the white space off.
std::string_view trimmed(std::string_view token) {
  std::size_t n = token.size();
  while (n != 0 && is_space(token[n - 1])) --n;
  return token.substr(0, n);
}

// What stands between the quotes of a string; the text of any other scalar; nothing for null.
std::string_view plain(std::string_view token) {
  std::size_t n = token.size();
  if (n != 0 && token.front() == '"') {
    while (n > 2 && token[n - 1] != '"') --n;
    return token.substr(1, n - 2);
  }
  token = trimmed(token);
  return token == "null" ? std::string_view() : token;
}

bool is_null(std::string_view token) { return token.starts_with("null"); }

// A token reaches to the next one. On-Demand passes over a string that is followed by a colon as if it were a
// key; where a value should stand it is a sign of quotes that were not escaped.
bool is_misplaced_key(std::string_view token) {
  return token.front() == '"' && token.data()[token.size()] == ':';
}

std::uint32_t code(Interner& interner, std::string_view token) {
  return is_null(token) ? Interner::kNone : interner.code(plain(token));
}

// On-Demand reads the byte behind the text as a token. In text whose brackets do not match it takes a comma
// or bracket there for one of the text, and goes on behind the end; a zero stops it.
class Terminated {
 public:
  explicit Terminated(char* end) : end_(end), kept_(*end) { *end_ = '\0'; }
  ~Terminated() { *end_ = kept_; }
  Terminated(const Terminated&) = delete;
  Terminated& operator=(const Terminated&) = delete;

 private:
  char* end_;
  char kept_;
};

// An id as a number, or as the text of one.
void read_id(std::string_view token, std::int64_t& id) {
  const char* const digits = token.data() + (token.starts_with('"') ? 1 : 0);
  if (!read_integer(digits, id)) id = kNoId;
}

}  // namespace

Extractor::Outcome Extractor::take_list(char* text, std::size_t size, std::size_t capacity,
                                        std::uint64_t offset) {
  const Terminated terminated(text + size);
  ondemand::document document;
  if (parser_.iterate(text, size, capacity).get(document)) return {End::failed, 1};
  ondemand::array list;
  if (document.get_array().get(list)) return {End::failed, 1};
  const char* behind =
      text + 1;  // the last event that was taken, before the comma or bracket that follows it
  bool any = false;
  for (auto element : list) {
    Value value;
    if (std::move(element).get(value)) {
      return {any ? End::failed_behind : End::failed, static_cast<std::size_t>(behind - text)};
    }
    const char* const at = value.raw_json_token().data();
    event_ = Event();
    event_.at = offset + static_cast<std::uint64_t>(at - text);
    ondemand::object object;
    if (*at != '{' || value.get_object().get(object) || !read(object)) {
      return {End::failed, static_cast<std::size_t>(at - text)};
    }
    collector_.add(event_, series_);
    any = true;
    if (document.current_location().get(behind)) behind = text + size - 1;
    behind = std::max<const char*>(behind, at + 1);
  }
  // The list's own end may stand before the one that the caller put there.
  behind = skip_space(behind, text + size - 1);
  const auto at = static_cast<std::size_t>(behind - text);
  return {at == size - 1 ? End::text : End::closed, at};
}

bool Extractor::take_object(char* text, std::size_t size, std::size_t capacity, std::uint64_t at) {
  const Terminated terminated(text + size);
  ondemand::document document;
  if (parser_.iterate(text, size, capacity).get(document)) return false;
  ondemand::object object;
  if (document.get_object().get(object)) return false;
  event_ = Event();
  event_.at = at;
  if (!read(object)) return false;
  collector_.add(event_, series_);
  return true;
}

bool Extractor::read(ondemand::object& object) {
  Event& event = event_;
  series_.clear();
  for (auto result : object) {
    ondemand::field field;
    if (std::move(result).get(field)) return false;
    const char* const key = field.key().raw();
    Value& value = field.value();
    const std::string_view token = value.raw_json_token();
    if (is_misplaced_key(token)) return false;
    switch (*key) {
      case 'p':
        if (is(key, "ph")) {
          const std::string_view text = plain(token);
          event.phase = text.empty() ? '\0' : text.front();
        } else if (is(key, "pid")) {
          event.process = code(strings_.idents, token);
        }
        break;
      case 'c':
        if (is(key, "cat")) event.category = code(strings_.categories, token);
        break;
      case 'n':
        if (is(key, "name")) event.name = code(strings_.names, token);
        break;
      case 't':
        if (is(key, "ts")) {
          event.ts_state = read_time(token.data(), event.ts);
        } else if (is(key, "tid")) {
          event.thread = code(strings_.idents, token);
        }
        break;
      case 'd':
        if (is(key, "dur")) event.dur_state = read_time(token.data(), event.dur);
        break;
      case 'i':
        if (is(key, "id")) {
          event.id = plain(token);
        } else if (is(key, "id2") && !read_id2(value)) {
          return false;
        }
        break;
      case 's':
        if (is(key, "scope")) event.scope = plain(token);
        break;
      case 'b':
        if (is(key, "bp")) {
          const std::string_view text = plain(token);
          event.binding = text.empty() ? '\0' : text.front();
        }
        break;
      case 'a':
        if (is(key, "args") && !read_args(value)) return false;
        break;
      default:
        break;
    }
  }
  return true;
}

// {"local": id} or {"global": id}
bool Extractor::read_id2(Value& value) {
  if (*value.raw_json_token().data() != '{') return true;
  ondemand::object object;
  if (value.get_object().get(object)) return false;
  for (auto result : object) {
    ondemand::field field;
    if (std::move(result).get(field)) return false;
    const char* const key = field.key().raw();
    const std::string_view token = field.value().raw_json_token();
    if (is_misplaced_key(token)) return false;
    const bool local = is(key, "local");
    if (!local && !is(key, "global")) continue;
    event_.id = plain(token);
    event_.id_scope = local ? IdScope::local : IdScope::global;
  }
  return true;
}

bool Extractor::read_args(Value& value) {
  if (*value.raw_json_token().data() != '{') return true;  // arguments that are no object stay in the file
  ondemand::object object;
  if (value.get_object().get(object)) return false;
  // Keys may come in any order: as long as the phase is not known, it may be a counter.
  const bool maybe_counter = event_.phase == 'C' || event_.phase == '\0';
  series_.clear();
  for (auto result : object) {
    ondemand::field field;
    if (std::move(result).get(field)) return false;
    const char* const key = field.key().raw();
    const std::string_view token = field.value().raw_json_token();
    if (is_misplaced_key(token)) return false;
    if (maybe_counter) [[unlikely]] {
      const std::string_view name(key, static_cast<std::size_t>(string_end(key, token.data()) - key));
      series_.emplace_back(name, token);
    }
    read_arg(key, token);
  }
  return true;
}

void Extractor::read_arg(const char* key, std::string_view token) {
  Event& event = event_;
  switch (*key) {
    case 'E':
      if (is(key, "External id")) read_id(token, event.external_id);
      break;
    case 'e':  // as older producers write it
      if (is(key, "external id")) read_id(token, event.external_id);
      break;
    case 'c':  // as libkineto, XLA and exports of Nsight Systems write it
      if (is(key, "correlation") || is(key, "correlation_id") || is(key, "correlationId")) {
        read_id(token, event.correlation);
      }
      break;
    case 'd':
      if (is(key, "device")) event.has_device = read_integer(token.data(), event.device);
      break;
    case 's':
      if (is(key, "stream")) {
        std::int64_t stream = 0;
        event.has_stream = read_integer(token.data(), stream);
      } else if (is(key, "sort_index")) {
        (void)read_integer(token.data(), event.sort_index);
      }
      break;
    case 'P':
      if (is(key, "Python id")) {
        read_id(token, event.python_id);
      } else if (is(key, "Python parent id")) {
        read_id(token, event.python_parent);
      }
      break;
    case 'f':
      if (is(key, "finished")) event.unfinished = token.starts_with("false");
      break;
    case 'n':
      if (is(key, "name")) event.label = plain(token);
      break;
    case 'l':
      if (is(key, "labels")) event.label = plain(token);
      break;
    case 'T':
      if (is(key, "Total Allocated")) {
        event.has_memory_totals = read_integer(token.data(), event.allocated);
      } else if (is(key, "Total Reserved")) {
        (void)read_integer(token.data(), event.reserved);
      }
      break;
    case 'D':
      if (is(key, "Device Type")) {
        (void)read_integer(token.data(), event.device_type);
      } else if (is(key, "Device Id")) {
        (void)read_integer(token.data(), event.device_id);
      }
      break;
    default:
      break;
  }
}

}  // namespace torchtrt_viz::kineto
