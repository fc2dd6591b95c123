// The reason of a delegate's last failure on this thread: the runtime passes on a bare error code.
#pragma once

#include <optional>

#include "core/error.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz::et {

TORCHTRT_VIZ_API void set_last_error(Error failure);
// The last one since it was taken last; nothing where no delegate of ours failed.
TORCHTRT_VIZ_API std::optional<Error> take_last_error();

}  // namespace torchtrt_viz::et
