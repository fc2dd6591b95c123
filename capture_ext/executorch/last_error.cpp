#include "executorch/last_error.hpp"

#include <utility>

namespace torchtrt_viz::et {
namespace {
thread_local std::optional<Error> last;
}

void set_last_error(Error failure) { last = std::move(failure); }

std::optional<Error> take_last_error() { return std::exchange(last, std::nullopt); }

}  // namespace torchtrt_viz::et
