"""The compiled capture module and torch, imported once, with their versions checked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from torchtrt_viz._native import native
from torchtrt_viz.errors import CompatibilityError, MissingDependencyError
from torchtrt_viz.runtime.tensorrt_libraries import point_to_libraries

__all__ = ["capture_module", "executorch_mismatch", "loaded_torch", "recorded_build", "versions"]


@cache
def capture_module() -> ModuleType:
    """Return ``torchtrt_viz._native.capture``.

    Raises
    ------
    MissingDependencyError
        Without executorch.
    CompatibilityError
        When another minor version of executorch is installed than the extension was built with: its C++
        classes differ in layout from one to the next, and a mismatch crashes instead of failing.
    TorchTrtVizError
        When the extension was not built.
    """
    if find_spec("executorch") is None:
        raise MissingDependencyError("executorch", "capture", "load and run programs")
    _check_executorch(recorded_build())  # before anything of the other version is loaded
    module = native("capture")
    _check_executorch(module.built_with())
    if module.TENSORRT_ENGINE:
        point_to_libraries()
    return module


def recorded_build() -> dict[str, str]:
    """Return the versions that were written beside the extension when it was built; empty without any."""
    import json
    from pathlib import Path

    # the folder of the compiled modules, wherever the package lies
    import torchtrt_viz._native as package

    path = Path(next(iter(package.__path__))) / "built_with.json"
    if not path.is_file():
        return {}
    found: dict[str, str] = json.loads(path.read_text())
    return found


def executorch_mismatch(built: Mapping[str, str]) -> CompatibilityError | None:
    """Return what to raise where the installed executorch is not of the minor version that was built with."""
    wanted = built.get("executorch", "")
    try:
        installed = version("executorch")
    except PackageNotFoundError:
        return None
    if not wanted or _minor(wanted) == _minor(installed):
        return None
    fitting = f"=={_minor(wanted)}.*"
    reason = "another minor version has other C++ classes"
    return CompatibilityError("executorch", wanted, installed, fitting, reason)


def _check_executorch(built: Mapping[str, str]) -> None:
    mismatch = executorch_mismatch(built)
    if mismatch is not None:
        raise mismatch


def _minor(text: str) -> str:
    """Return "1.5" of "1.5.1+cpu": releases of one minor version have one ABI."""
    return ".".join(text.split("+", 1)[0].split(".")[:2])


def loaded_torch() -> Any | None:
    """Return torch if the process has loaded it; never import it."""
    torch = sys.modules.get("torch")
    # half-imported, or a stand-in of a test: not usable
    return torch if torch is not None and hasattr(torch, "Tensor") else None


def versions() -> dict[str, str]:
    """Return versions of what a capture depends on, those that are installed."""
    found = {"python": sys.version.split()[0]}
    for name in ("torchtrt-viz", "torch", "executorch", "numpy", "pandas"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
