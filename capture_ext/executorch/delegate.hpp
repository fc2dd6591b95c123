// The delegate "TensorRTBackend": runs a blob's engine and reports its call, phases and layers as events.
#pragma once

#include <string>

#include "core/visibility.hpp"

namespace torchtrt_viz::et {

inline constexpr char kBackendId[] = "TensorRTBackend";

// Loading the library registers the delegate once per process. `detail` says why it could not: another
// library has the name.
struct Registration {
  bool registered = false;
  std::string detail;
};
TORCHTRT_VIZ_API const Registration& delegate_registration();

}  // namespace torchtrt_viz::et

// For callers without C++, such as ctypes: 0 when this library's delegate is the one registered.
extern "C" TORCHTRT_VIZ_API int torchtrt_viz_delegate_status(void);
extern "C" TORCHTRT_VIZ_API const char* torchtrt_viz_delegate_detail(void);
