"""Capture and analyse profiles of Torch-TensorRT, AOTInductor and ExecuTorch deployments.

Start with one of these::

    import torchtrt_viz as tv

    trace = tv.load("run.etdp")          # any trace that the field writes
    trace.operators()                    # a pandas frame
    trace.timeline()                     # an interactive timeline, in a notebook

    with tv.profile(level="layers") as capture:
        program.run(x)
    capture.trace.questions()

In a notebook: ``%load_ext torchtrt_viz``, then ``%%trtprofile`` at the top of a cell.
Public names are loaded on first use: importing the package imports no torch, plotly or IPython.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtrt_viz.analysis.compare import compare
    from torchtrt_viz.capture.attach import attach
    from torchtrt_viz.capture.profile import Capture, last, profile
    from torchtrt_viz.capture.program import Program
    from torchtrt_viz.errors import (
        CaptureActiveError,
        CaptureError,
        CompatibilityError,
        MissingDependencyError,
        OptionError,
        OutputError,
        TorchTrtVizError,
        TraceFormatError,
    )
    from torchtrt_viz.export.package import export_package, load_package
    from torchtrt_viz.export.program import export_program
    from torchtrt_viz.loaders import load
    from torchtrt_viz.magic import load_ipython_extension, unload_ipython_extension
    from torchtrt_viz.session import Session
    from torchtrt_viz.trace import Repair, Trace
    from torchtrt_viz.widgets.panel import CapturePanel

_HOME = {
    "Capture": "torchtrt_viz.capture.profile",
    "CaptureActiveError": "torchtrt_viz.errors",
    "CaptureError": "torchtrt_viz.errors",
    "CapturePanel": "torchtrt_viz.widgets.panel",
    "CompatibilityError": "torchtrt_viz.errors",
    "MissingDependencyError": "torchtrt_viz.errors",
    "OptionError": "torchtrt_viz.errors",
    "OutputError": "torchtrt_viz.errors",
    "Program": "torchtrt_viz.capture.program",
    "Repair": "torchtrt_viz.trace",
    "Session": "torchtrt_viz.session",
    "TorchTrtVizError": "torchtrt_viz.errors",
    "Trace": "torchtrt_viz.trace",
    "TraceFormatError": "torchtrt_viz.errors",
    "attach": "torchtrt_viz.capture.attach",
    "export_package": "torchtrt_viz.export.package",
    "compare": "torchtrt_viz.analysis.compare",
    "export_program": "torchtrt_viz.export.program",
    "last": "torchtrt_viz.capture.profile",
    "load": "torchtrt_viz.loaders",
    "load_package": "torchtrt_viz.export.package",
    "load_ipython_extension": "torchtrt_viz.magic",
    "profile": "torchtrt_viz.capture.profile",
    "unload_ipython_extension": "torchtrt_viz.magic",
}

__all__ = [  # noqa: RUF022 - in the order in which a reader meets them
    "load",
    "Trace",
    "Session",
    "Repair",
    "compare",
    "profile",
    "last",
    "Capture",
    "CapturePanel",
    "Program",
    "export_program",
    "export_package",
    "load_package",
    "attach",
    "load_ipython_extension",
    "unload_ipython_extension",
    "TorchTrtVizError",
    "TraceFormatError",
    "OptionError",
    "OutputError",
    "CaptureError",
    "CaptureActiveError",
    "CompatibilityError",
    "MissingDependencyError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("torchtrt-viz")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchtrt_viz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
