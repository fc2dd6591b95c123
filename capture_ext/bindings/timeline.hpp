// The timeline index as a Python class, part of module torchtrt_viz._native.columns.
#pragma once

#include <nanobind/nanobind.h>

namespace torchtrt_viz::bindings {

void bind_timeline(nanobind::module_& m);

}  // namespace torchtrt_viz::bindings
