// Values of the capture module between C++ and Python: tensors, dictionaries, exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "core/blob.hpp"
#include "core/error.hpp"
#include "core/recorder.hpp"
#include "executorch/program.hpp"

namespace torchtrt_viz::bindings {

namespace nb = nanobind;

// Call once: failures of ours become OptionError for refused options, CaptureError with `error_name` and
// `code` for everything else.
void translate_failures();

// What the value points into is added to `keep`.
et::InputValue take_input(nb::handle item, std::size_t i, std::vector<nb::object>& keep);
nb::object give_output(et::OutputValue&& value);

nb::dict give_method(const et::MethodDescription& meta);
nb::dict give_block(const et::EventColumns::Block& block, const std::string& name, std::uint64_t events);
nb::dict give_anchor(const std::string& what, const et::ClockAnchor& anchor);
nb::list give_engines(const std::vector<EngineInfo>& engines);
nb::dict give_columns(RecordedColumns&& columns);
nb::dict give_blob(const EngineBlob& blob);

}  // namespace torchtrt_viz::bindings
