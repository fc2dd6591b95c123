#include "executorch/delegate_number.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace torchtrt_viz::et {
namespace {

struct Living {
  std::mutex mutex;
  std::map<std::pair<const void*, std::string>, std::int64_t> counts;
};

Living& living() {
  static Living* const instance = new Living;  // NOLINT: programs may outlive statics
  return *instance;
}

}  // namespace

DelegateNumber::DelegateNumber(const void* allocator, std::string method)
    : allocator_(allocator), method_(std::move(method)) {
  const std::lock_guard lock(living().mutex);
  value_ = living().counts[{allocator_, method_}]++;
}

DelegateNumber::~DelegateNumber() {
  const std::lock_guard lock(living().mutex);
  const auto found = living().counts.find({allocator_, method_});
  if (found != living().counts.end() && --found->second == 0) living().counts.erase(found);
}

}  // namespace torchtrt_viz::et
