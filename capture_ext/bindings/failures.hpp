// Failures of ours as Python's exceptions, in the modules of formats and columns. The capture module has its
// own translator, to the package's errors (capture_values.hpp): each module has a nanobind domain of its own,
// so that none translates for another.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

#include "core/error.hpp"

namespace torchtrt_viz::bindings {

// Call once a module. What the caller gave wrongly becomes ValueError, anything else RuntimeError.
inline void translate_failures() {
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& failure) {
      switch (failure.code()) {
        case Code::refused_option:
        case Code::invalid_argument:
        case Code::invalid_type:
        case Code::not_supported:
          PyErr_SetString(PyExc_ValueError, failure.what());
          break;
        default:
          PyErr_SetString(PyExc_RuntimeError, failure.what());
      }
    }
  });
}

}  // namespace torchtrt_viz::bindings
