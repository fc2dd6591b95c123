"""Export: from a torch module to a program whose regions run in the ``TensorRTBackend`` delegate.

``export_program`` does it in one call; ``export_package`` makes an AOTInductor package whose regions run
behind an operator (``load_package`` loads it). Who has a pipeline of his own takes
:class:`TensorRTPartitioner` and hands it to ``executorch.exir.to_edge_transform_and_lower``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtrt_viz.export.backend import TensorRTBackend
    from torchtrt_viz.export.package import ExportedPackage, export_package, load_package
    from torchtrt_viz.export.partitioner import TensorRTPartitioner
    from torchtrt_viz.export.program import ExportedFile, Method, export_program

_HOME = {
    "ExportedFile": "torchtrt_viz.export.program",
    "ExportedPackage": "torchtrt_viz.export.package",
    "Method": "torchtrt_viz.export.program",
    "TensorRTBackend": "torchtrt_viz.export.backend",
    "TensorRTPartitioner": "torchtrt_viz.export.partitioner",
    "export_package": "torchtrt_viz.export.package",
    "export_program": "torchtrt_viz.export.program",
    "load_package": "torchtrt_viz.export.package",
}

__all__ = [
    "ExportedFile",
    "ExportedPackage",
    "Method",
    "TensorRTBackend",
    "TensorRTPartitioner",
    "export_package",
    "export_program",
    "load_package",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchtrt_viz.export' has no attribute {name!r}")
