"""The compiled capture module and torch, imported once, with their versions checked."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from torchtrt_viz._native import native
from torchtrt_viz.errors import CompatibilityError, MissingDependencyError, TorchTrtVizError
from torchtrt_viz.runtime.tensorrt_libraries import point_to_libraries

__all__ = ["capture_module", "loaded_torch", "versions"]


@cache
def capture_module() -> ModuleType:
    """Return ``torchtrt_viz._native.capture``.

    Raises
    ------
    MissingDependencyError
        Without executorch.
    CompatibilityError
        When another executorch is installed than the extension was built with: its C++ classes differ in
        layout from version to version, and a mismatch crashes instead of failing.
    TorchTrtVizError
        When the extension was not built.
    """
    if find_spec("executorch") is None:
        raise MissingDependencyError("executorch", "capture", "load and run programs")
    try:
        module = native("capture")
    except TorchTrtVizError as error:
        built = _recorded_build()
        if built is not None:
            _compare(built)
        raise error
    _compare(module.built_with())
    if module.TENSORRT_ENGINE:
        point_to_libraries()
    return module


def _recorded_build() -> dict[str, str] | None:
    """Versions written beside the extension when it was built, for when it cannot even be loaded."""
    import json
    from pathlib import Path

    # the folder of the compiled modules, wherever the package lies
    import torchtrt_viz._native as package

    path = Path(next(iter(package.__path__))) / "built_with.json"
    if not path.is_file():
        return None
    found: dict[str, str] = json.loads(path.read_text())
    return found


def _compare(built: dict[str, str]) -> None:
    wanted = built.get("executorch", "")
    try:
        installed = version("executorch")
    except PackageNotFoundError:
        return
    if wanted and _release(wanted) != _release(installed):
        raise CompatibilityError("executorch", wanted, installed)


def _release(text: str) -> str:
    """Version without its local part ("1.5.1+cpu" is 1.5.1 built for another machine)."""
    return text.split("+", 1)[0]


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
