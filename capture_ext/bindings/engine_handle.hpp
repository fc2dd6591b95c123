#pragma once

#include <nanobind/nanobind.h>

namespace torchtrt_viz::bindings {

void bind_engine_handle(nanobind::module_& m);

}  // namespace torchtrt_viz::bindings
