"""``torch.ops.torchtrt_viz`` and the process-wide switch ``torch.ops.tensorrt.set_profile_*``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from torchtrt_viz.errors import CaptureError, MissingDependencyError
from torchtrt_viz.runtime.modules import capture_module
from torchtrt_viz.runtime.torchtrt_takeover import guard

__all__ = ["load_torch_ops"]

_LIBRARY = "libtorchtrt_viz_torch_ops.so"


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
        When another executorch is installed than the extension was built with.
    CaptureError
        When the library was not built, or torch cannot load it.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("torch", "capture", "load the torch operators") from error
    module = capture_module()
    path = Path(str(module.__file__)).parent / "lib" / _LIBRARY
    if not path.is_file():
        raise CaptureError(
            f"{path} does not exist: the extension was built without torch; reinstall torchtrt-viz where "
            "torch is installed"
        )
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        built = module.built_with().get("torch", "another version")
        raise CaptureError(
            f"torch {torch.__version__} cannot load {path.name}, which was built with torch {built}: {error}"
        ) from error

    guard(torch, str(path))
    return path
