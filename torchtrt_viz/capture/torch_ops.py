"""The operators of ``torch.ops.torchtrt_viz`` and the process-wide switch, for users to load by name."""

from torchtrt_viz.runtime.torch_ops import load_torch_ops

__all__ = ["load_torch_ops"]
