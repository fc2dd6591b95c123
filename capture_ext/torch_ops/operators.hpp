// torch operators of this project.
//
// torch.ops.tensorrt.{set,get}_profile_{path_prefix,format,execution}: the process-wide switch. Defined when
// the library is loaded, unless Torch-TensorRT has defined them by then (profile_ops_are_ours() tells).
// Loaded later, Torch-TensorRT could not define its own: ours are withdrawn while other libraries load
// (torchtrt_viz/runtime/torchtrt_takeover.py does it for Python). A native program loads Torch-TensorRT
// first, or calls torchtrt_viz_withdraw_profile_ops() before.
//
// torch.ops.torchtrt_viz:
//   execute_engine(Tensor[] inputs, Tensor engine, str name) -> Tensor[]
//       Runs an engine. `engine` is a TR01/TR02 blob in a uint8 tensor in host memory, `name` what its files
//       are called after. The engine is set up at the first call with a blob and kept for later ones.
//   release_engines() -> int
//       Ends the engines that were set up (their files are completed), and says how many those were.
//   profile_ops_are_ours() -> bool
//   define_profile_ops() -> bool, withdraw_profile_ops() -> bool
//       Give torch.ops.tensorrt the operators unless another library has; take them back. Whether they are
//       ours after, or were before.
//
// The library needs a torch in the process, 2.10 or later, and does not bring one: load torch first. Loaded
// without, it defines nothing, and torchtrt_viz_torch_ops_error() says why.
#pragma once

#include "core/visibility.hpp"
#include "torch_ops/torch_values.hpp"

namespace torchtrt_viz::torch_ops {

bool profile_ops_are_ours();
bool define_profile_ops();
bool withdraw_profile_ops();

// The operators of torch.ops.torchtrt_viz that run engines, as functions of a stack.
void execute_engine(Slot* stack);
void release_engines(Slot* stack);

}  // namespace torchtrt_viz::torch_ops

// Defines the operators where that has not been done, for a torch that was loaded after this library. Null:
// they are there; otherwise why they are not, in words that stay valid until the thread's next call.
extern "C" TORCHTRT_VIZ_API const char* torchtrt_viz_torch_ops_error(void);

// 1 where the profiling operators were ours and are gone now.
extern "C" TORCHTRT_VIZ_API int torchtrt_viz_withdraw_profile_ops(void);
