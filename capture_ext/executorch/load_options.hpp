// The delegate's options, from where the runtime hands them over: load-time options and compile specs.
#pragma once

#include <executorch/runtime/backend/interface.h>

#include <string_view>

#include "core/error.hpp"
#include "core/options.hpp"

namespace torchtrt_viz::et {

// Both refuse values that cannot be, whichever source they came from, with key, value and choices.
OptionSet read_load_options(const executorch::runtime::BackendInitContext& context);
OptionSet read_compile_specs(executorch::runtime::ArrayRef<executorch::runtime::CompileSpec> specs);

// Whether a key is one of ours, known or misspelt.
bool is_profile_option(std::string_view key) noexcept;

}  // namespace torchtrt_viz::et
