// The reason of a delegate's last failure on this thread: the runtime passes on a bare error code.
#pragma once

#include <optional>

#include "core/status.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz::et {

TORCHTRT_VIZ_API void set_last_error(Status status);
// The last one since it was taken last; nothing where no delegate of ours failed.
TORCHTRT_VIZ_API std::optional<Status> take_last_error();

}  // namespace torchtrt_viz::et
