// What went wrong, in words that reach the user: no exception crosses a library or a C boundary here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace torchtrt_viz {

enum class Code : std::uint8_t {
  ok,
  refused_option,  // key, value and choices are set
  invalid_argument,
  invalid_type,
  invalid_program,
  not_supported,
  not_found,
  out_of_memory,
  io_error,
  internal,
};

struct [[nodiscard]] Status {
  Code code = Code::ok;
  std::string message;
  std::string key, value, choices;  // of a refused option

  bool ok() const noexcept { return code == Code::ok; }

  static Status success() { return {}; }
  static Status error(Code code, std::string message) { return {code, std::move(message), {}, {}, {}}; }
  // `shown` is how the message writes the value, quotes included.
  static Status refused(std::string key, std::string value, const std::string& shown, std::string choices) {
    std::string text = "option '" + key + "' cannot be " + shown + ": " + choices;
    return {Code::refused_option, std::move(text), std::move(key), std::move(value), std::move(choices)};
  }
};

}  // namespace torchtrt_viz
