// What some work throws.
#pragma once

#include <string>

#include "core/error.hpp"

namespace torchtrt_viz::test {

// Internal and without words where it throws nothing.
template <typename Work>
Error failure_of(Work&& work) {
  try {
    work();
  } catch (const Error& failure) {
    return failure;
  }
  return {Code::internal, ""};
}

inline bool says(const Error& failure, const std::string& text) {
  return std::string(failure.what()).find(text) != std::string::npos;
}

template <typename Work>
bool throws(Work&& work) {
  return *failure_of(work).what() != '\0';
}

}  // namespace torchtrt_viz::test
