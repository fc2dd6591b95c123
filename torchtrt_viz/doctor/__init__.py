"""What of the product works on this machine, and what each gap costs.

`packages` looks at what is installed, `programs` at what runs programs, `gpu` at TensorRT and the GPU;
`findings` is what they say. Nothing here imports torch or a runtime unless it has to be tried to be known.
"""

from __future__ import annotations

from torchtrt_viz.doctor.findings import FINDINGS, Finding
from torchtrt_viz.doctor.gpu import look_at_gpu
from torchtrt_viz.doctor.packages import look_at_core, look_at_packages
from torchtrt_viz.doctor.programs import look_at_programs

__all__ = ["FINDINGS", "Finding", "examine"]


def examine() -> list[Finding]:
    """Look at everything and return the findings, needed things first."""
    return [*look_at_core(), *look_at_programs(), *look_at_packages(), *look_at_gpu()]
