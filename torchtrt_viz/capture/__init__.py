"""Capture: load and run programs, profile them, keep what was recorded.

``profile`` and ``Program`` are what most users need; both are public names of the package as well. The
options that they, the notebook magics and the command line share are in :mod:`torchtrt_viz.capture.options`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtrt_viz.capture.options import CaptureOptions
    from torchtrt_viz.capture.profile import Capture, last, profile
    from torchtrt_viz.capture.program import Program

_HOME = {
    "Capture": "torchtrt_viz.capture.profile",
    "CaptureOptions": "torchtrt_viz.capture.options",
    "Program": "torchtrt_viz.capture.program",
    "last": "torchtrt_viz.capture.profile",
    "profile": "torchtrt_viz.capture.profile",
}

__all__ = ["Capture", "CaptureOptions", "Program", "last", "profile"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchtrt_viz.capture' has no attribute {name!r}")
