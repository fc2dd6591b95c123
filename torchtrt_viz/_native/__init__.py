"""The compiled modules, and the one place that imports them.

``columns`` (algorithms over whole columns) and the decoders need nothing but numpy; ``capture`` needs the
executorch runtime that it was built against.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from torchtrt_viz.errors import TorchTrtVizError

__all__ = ["native"]


def native(name: str) -> ModuleType:
    """Return the compiled module ``torchtrt_viz._native.<name>``.

    Raises
    ------
    TorchTrtVizError
        When it was not built, or a library that it needs is not there.
    """
    try:
        return import_module(f"torchtrt_viz._native.{name}")
    except ImportError as error:
        raise TorchTrtVizError(
            f"the compiled module {name!r} of torchtrt_viz cannot be loaded ({error}). "
            "Reinstall the package with a C++20 compiler present: pip install --force-reinstall torchtrt-viz"
        ) from error
