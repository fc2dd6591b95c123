// Proxy delegates: other people's backends, timed from outside.
//
// A proxy is registered under an id of its own and passes everything on to the backend that it wraps; around
// each call it emits torchtrt.delegate. A program reaches it in a copy whose delegates carry the proxy's id,
// which is as long as the backend's own, so that nothing else in the file moves. The original file is never
// changed.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz::et {

// Registers `wrapper` for `backend`, which has to be registered by now. The same pair again does nothing.
TORCHTRT_VIZ_API void wrap_backend(const std::string& backend, const std::string& wrapper);

// (wrapper, backend) of every proxy of the process.
TORCHTRT_VIZ_API std::vector<std::pair<std::string, std::string>> proxies();

// Gives the delegates of a program other ids, in place, each of the length that it has. Returns how
// many there were of each old id. The program's tables are followed with every offset checked; a damaged one
// is refused unchanged.
TORCHTRT_VIZ_API std::map<std::string, std::size_t> rename_backends(
    std::span<std::byte> program, const std::map<std::string, std::string>& names);

}  // namespace torchtrt_viz::et
