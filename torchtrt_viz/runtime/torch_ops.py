"""``torch.ops.torchtrt_viz`` and the process-wide switch ``torch.ops.tensorrt.set_profile_*``."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path

from torchtrt_viz.errors import CaptureError, CompatibilityError, MissingDependencyError
from torchtrt_viz.runtime.modules import capture_module
from torchtrt_viz.runtime.torchtrt_takeover import guard

__all__ = ["OLDEST_TORCH", "load_torch_ops"]

_LIBRARY = "libtorchtrt_viz_torch_ops.so"
#: The first release whose C interface has all that the operators call (``capture_ext/torch_ops``).
OLDEST_TORCH = (2, 10)


@cache
def load_torch_ops() -> Path:
    """Load the torch operators, once per process; return the library.

    Defines ``torch.ops.torchtrt_viz.execute_engine``, which packages with engines need before they are
    loaded, and, unless Torch-TensorRT has defined them, ``torch.ops.tensorrt.set_profile_execution``,
    ``set_profile_format``, ``set_profile_path_prefix`` and their getters. Torch-TensorRT may be imported
    before or after: where it brings those operators, they are its own from then on
    (:mod:`torchtrt_viz.runtime.torchtrt_takeover`).

    Raises
    ------
    MissingDependencyError
        Without torch or executorch.
    CompatibilityError
        When torch is older than 2.10, or another executorch is installed than the extension was built with.
    CaptureError
        When the library is not there, or cannot be loaded.
    """
    try:
        import torch  # optional, and slow to import
    except ImportError as error:
        raise MissingDependencyError("torch", "capture", "load the torch operators") from error
    path = Path(str(capture_module().__file__)).parent / "lib" / _LIBRARY
    try:
        torch.ops.load_library(str(path))
        why = _why_undefined(path)
    except OSError as error:
        raise CaptureError(
            f"the torch operators cannot be loaded: {error}. Reinstall the package: "
            "pip install --force-reinstall --no-deps --no-cache-dir torchtrt-viz"
        ) from error
    if why is not None:
        raise _undefined(why, str(torch.__version__))
    guard(torch, str(path))
    return path


def _why_undefined(path: Path) -> str | None:
    """Ask the library why it has not defined its operators; None when it has."""
    ask = ctypes.CDLL(str(path)).torchtrt_viz_torch_ops_error
    ask.restype = ctypes.c_char_p
    said: bytes | None = ask()
    return None if said is None else said.decode(errors="replace")


def _undefined(why: str, installed: str) -> CaptureError | CompatibilityError:
    release = tuple(int(part) for part in re.findall(r"\d+", installed)[:2])
    if release and release < OLDEST_TORCH:
        return CompatibilityError("torch", "", installed, ">=" + ".".join(map(str, OLDEST_TORCH)), why)
    return CaptureError(f"torch {installed} does not take the operators of torchtrt_viz: {why}")
