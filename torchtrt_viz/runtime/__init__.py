"""The compiled capture module and torch, found and checked once for all that run programs.

`modules` imports them; `torch_ops` registers the operators and the process-wide switch; `torchtrt_takeover`
makes room for Torch-TensorRT's own operators, and `operator_owner` says whose are in use;
`tensorrt_libraries` finds TensorRT's and CUDA's libraries; `profile_settings` is what a delegate's profile
can be set to.
"""
