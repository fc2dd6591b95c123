"""Capture: load and run programs, profile them, keep what was recorded.

``profile`` and ``Program`` are what most users need; both are public names of the package as well. The
options that they, the notebook magics and the command line share are in :mod:`torchtrt_viz.capture.options`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtrt_viz.capture.attach import attach
    from torchtrt_viz.capture.engine import Engine
    from torchtrt_viz.capture.options import CaptureOptions
    from torchtrt_viz.capture.profile import Capture, last, profile
    from torchtrt_viz.capture.program import Program
    from torchtrt_viz.capture.tensorrt_python import build_log
    from torchtrt_viz.capture.torch_ops import load_torch_ops

_HOME = {
    "Capture": "torchtrt_viz.capture.profile",
    "CaptureOptions": "torchtrt_viz.capture.options",
    "Engine": "torchtrt_viz.capture.engine",
    "Program": "torchtrt_viz.capture.program",
    "attach": "torchtrt_viz.capture.attach",
    "build_log": "torchtrt_viz.capture.tensorrt_python",
    "last": "torchtrt_viz.capture.profile",
    "load_torch_ops": "torchtrt_viz.capture.torch_ops",
    "profile": "torchtrt_viz.capture.profile",
}

__all__ = [
    "Capture",
    "CaptureOptions",
    "Engine",
    "Program",
    "attach",
    "build_log",
    "last",
    "load_torch_ops",
    "profile",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchtrt_viz.capture' has no attribute {name!r}")
