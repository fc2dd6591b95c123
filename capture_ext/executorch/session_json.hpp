// What an ETDump file cannot say, as the JSON that stands beside it: clocks, methods of blocks, engines,
// versions.
#pragma once

#include <string>

#include "executorch/program.hpp"

namespace torchtrt_viz::et {

std::string session_json(Program& program, const std::string& executorch_version);

}  // namespace torchtrt_viz::et
