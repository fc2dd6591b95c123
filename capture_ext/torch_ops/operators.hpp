// torch operators of this project.
//
// torch.ops.tensorrt.{set,get}_profile_{path_prefix,format,execution}: the process-wide switch. Defined when
// the library is loaded, unless Torch-TensorRT has defined them by then (profile_ops_are_ours() tells).
// Loaded later, Torch-TensorRT could not define its own: ours are withdrawn while other libraries load
// (torchtrt_viz/capture/stepping_aside.py does it for Python). A native program loads Torch-TensorRT first,
// or calls torchtrt_viz_withdraw_profile_ops() before.
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
#pragma once

namespace torchtrt_viz::torch_ops {

bool profile_ops_are_ours();
bool define_profile_ops();
bool withdraw_profile_ops();

}  // namespace torchtrt_viz::torch_ops

extern "C" __attribute__((visibility("default"))) int torchtrt_viz_withdraw_profile_ops(void);
