// JSON text that is valid whatever goes in: names are escaped, bytes that are not UTF-8 become U+FFFD,
// numbers keep their full precision, and what is not a finite number is null.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace torchtrt_viz {

void append_json_string(std::string& out, std::string_view text);
void append_json_number(std::string& out, double value);
void append_json_integer(std::string& out, std::int64_t value);
// ns as us with all three decimals: trace-event JSON counts microseconds.
void append_json_us(std::string& out, std::int64_t ns);

// An object or array, written key by key.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  JsonObject& text(std::string_view key, std::string_view value) {
    name(key);
    append_json_string(out_, value);
    return *this;
  }
  JsonObject& integer(std::string_view key, std::int64_t value) {
    name(key);
    append_json_integer(out_, value);
    return *this;
  }
  JsonObject& number(std::string_view key, double value) {
    name(key);
    append_json_number(out_, value);
    return *this;
  }
  JsonObject& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  // `json` is already JSON.
  JsonObject& raw(std::string_view key, std::string_view json) {
    name(key);
    out_ += json;
    return *this;
  }
  template <typename Strings>
  JsonObject& texts(std::string_view key, const Strings& values) {
    name(key);
    out_ += '[';
    bool first = true;
    for (const auto& value : values) {
      if (!first) out_ += ',';
      first = false;
      append_json_string(out_, value);
    }
    out_ += ']';
    return *this;
  }
  void close() { out_ += '}'; }

 private:
  void name(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    append_json_string(out_, key);
    out_ += ':';
  }
  std::string& out_;
  bool first_ = true;
};

}  // namespace torchtrt_viz
