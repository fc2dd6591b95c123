// What went wrong, in words that reach the user.
//
// One system for all rooms: a failure is thrown as Error where it is found, and passes through code that has
// nothing to add, so that a call that succeeds carries no status and tests none. Exceptions stay inside this
// project's C++: wherever somebody else's code calls us (ExecuTorch's backend and platform, TensorRT's
// callbacks, C functions, threads, destructors, the end of the process) one place catches everything and
// translates it with current_failure(). Bindings and torch operators hand it on as Python's and torch's own
// exceptions.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/visibility.hpp"

namespace torchtrt_viz {

enum class Code : std::uint8_t {
  refused_option,  // refusal() says more
  invalid_argument,
  invalid_type,
  invalid_program,
  invalid_state,
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

// Of default visibility, so that it is one type in every library that throws or catches it. Copying it
// allocates nothing.
class TORCHTRT_VIZ_API Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}

  // `shown` is how the message writes the value, quotes included.
  static Error refused(std::string key, std::string value, const std::string& shown, std::string choices) {
    Error out(Code::refused_option, "option '" + key + "' cannot be " + shown + ": " + choices);
    out.refusal_ =
        std::make_shared<const Refusal>(Refusal{std::move(key), std::move(value), std::move(choices)});
    return out;
  }

  // The same failure in other words.
  Error with_message(const std::string& message) const {
    Error out(code_, message);
    out.refusal_ = refusal_;
    return out;
  }

  Code code() const noexcept { return code_; }
  const Refusal* refusal() const noexcept { return refusal_.get(); }  // with code refused_option

 private:
  Code code_;
  std::shared_ptr<const Refusal> refusal_;
};

// The exception that is being handled, as an Error: for `catch (...)` at a boundary.
inline Error current_failure() {
  try {
    throw;
  } catch (const Error& failure) {
    return failure;
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, "out of memory"};
  } catch (const std::exception& failure) {
    return {Code::internal, failure.what()};
  } catch (...) {
    return {Code::internal, "an exception of a foreign type"};
  }
}

// Work whose failure is on record already, or has nobody left to tell: destructors, the end of the process.
template <typename Work>
void regardless(Work&& work) noexcept {
  try {
    work();
  } catch (...) {
    return;
  }
}

}  // namespace torchtrt_viz
