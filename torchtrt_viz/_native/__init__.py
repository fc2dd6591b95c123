"""The compiled modules, and the one place that imports them.

``columns`` (algorithms over whole columns) and the decoders need nothing but numpy; ``capture`` needs the
executorch runtime that it was built against.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from torchtrt_viz.errors import MissingDependencyError, TorchTrtVizError

__all__ = ["native"]


def native(name: str) -> ModuleType:
    """Return the compiled module ``torchtrt_viz._native.<name>``.

    Raises
    ------
    MissingDependencyError
        When it needs executorch, which is not installed.
    TorchTrtVizError
        When it was not built, or a library that it needs is not there.
    """
    module = f"torchtrt_viz._native.{name}"
    try:
        return import_module(module)
    except ImportError as error:
        failure = error
    if name == "capture" and find_spec("executorch") is None:
        raise MissingDependencyError("executorch", "capture", "load and run programs") from failure
    if isinstance(failure, ModuleNotFoundError) and failure.name == module:
        state = "is not there: it was not built, or for another Python"
    else:
        state = f"cannot be loaded ({failure})"
    raise TorchTrtVizError(
        f"the compiled module {name!r} of torchtrt_viz {state}. Reinstall the package with a C++20 compiler "
        "present: pip install --force-reinstall --no-deps --no-cache-dir torchtrt-viz"
    ) from failure
