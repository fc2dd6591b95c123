// What went wrong, in words that reach the user: no exception crosses a library or a C boundary here.
#pragma once

#include <cstdint>
#include <memory>
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

// An option that was refused.
struct Refusal {
  std::string key, value, choices;
};

// Cheap where all is well: every step of a call returns one.
struct [[nodiscard]] Status {
  Code code = Code::ok;
  std::string message;
  std::shared_ptr<const Refusal> refusal;  // with code refused_option

  bool ok() const noexcept { return code == Code::ok; }

  static Status success() { return {}; }
  static Status error(Code code, std::string message) { return {code, std::move(message), nullptr}; }
  // `shown` is how the message writes the value, quotes included.
  static Status refused(std::string key, std::string value, const std::string& shown, std::string choices) {
    std::string text = "option '" + key + "' cannot be " + shown + ": " + choices;
    return {Code::refused_option, std::move(text),
            std::make_shared<const Refusal>(Refusal{std::move(key), std::move(value), std::move(choices)})};
  }
};

}  // namespace torchtrt_viz
