"""Who defines the profiling operators of ``torch.ops.tensorrt``, found out without touching this process.

Run as a program, the module loads torch, Torch-TensorRT and our operators in that order, as an application
would, and prints what it found as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec

from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.runtime.modules import loaded_torch

__all__ = ["Owner", "find_owner"]

_TIMEOUT_S = 240


@dataclass(frozen=True)
class Owner:
    """What became of the operators.

    Attributes
    ----------
    library
        "torchtrt_viz", "torch_tensorrt", or "" where nobody defines them.
    problem
        Why ours could not be loaded; empty when they were.
    torch_tensorrt
        Why Torch-TensorRT, which is installed, could not be imported; empty otherwise.
    """

    library: str
    problem: str = ""
    torch_tensorrt: str = ""


def find_owner() -> Owner:
    """Look at the operators of this process where it has loaded ours, else at those of a new one."""
    torch = loaded_torch()
    if torch is not None and hasattr(torch.ops.torchtrt_viz, "profile_ops_are_ours"):
        return Owner(_library())
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        said = done.stderr.strip().splitlines()
        return Owner("", said[-1] if said else f"the process that tried ended with {done.returncode}")
    return Owner(**json.loads(lines[-1]))


def _library() -> str:
    import torch  # optional, and slow to import

    ours = torch.ops.torchtrt_viz
    if hasattr(ours, "profile_ops_are_ours") and ours.profile_ops_are_ours():
        return "torchtrt_viz"
    return "torch_tensorrt" if hasattr(torch.ops.tensorrt, "set_profile_execution") else ""


def _try() -> Owner:
    from torchtrt_viz.runtime.torch_ops import load_torch_ops  # it is loaded after the two, as it would be

    theirs = problem = ""
    import_module("torch")
    if find_spec("torch_tensorrt") is not None:
        try:
            import_module("torch_tensorrt")
        except (ImportError, OSError, RuntimeError) as error:
            theirs = _first_line(error)
    try:
        load_torch_ops()
    except TorchTrtVizError as error:
        problem = _first_line(error)
    return Owner(_library(), problem, theirs)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


if __name__ == "__main__":
    print(json.dumps(asdict(_try())))
