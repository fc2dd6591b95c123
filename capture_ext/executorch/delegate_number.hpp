// The number of a delegate in its method, which the runtime does not say.
#pragma once

#include <cstdint>
#include <string>

namespace torchtrt_viz::et {

// Delegates of one method are numbered in the order in which the method sets them up: those of a method share
// its allocator, and they go together when it goes.
class DelegateNumber {
 public:
  DelegateNumber(const void* allocator, std::string method);
  ~DelegateNumber();
  DelegateNumber(const DelegateNumber&) = delete;
  DelegateNumber& operator=(const DelegateNumber&) = delete;
  std::int64_t value() const noexcept { return value_; }

 private:
  const void* allocator_;
  std::string method_;
  std::int64_t value_;
};

}  // namespace torchtrt_viz::et
