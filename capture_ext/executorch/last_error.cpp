#include "executorch/last_error.hpp"

#include <utility>

namespace torchtrt_viz::et {
namespace {
thread_local std::optional<Status> last;
}

void set_last_error(Status status) { last = std::move(status); }

std::optional<Status> take_last_error() { return std::exchange(last, std::nullopt); }

}  // namespace torchtrt_viz::et
