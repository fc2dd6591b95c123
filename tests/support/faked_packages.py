"""Packages that seem to be installed, or not to be, for one test: what finders and metadata say.

Nothing that is faked is imported; ``torch`` and ``executorch`` of the process are put back at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from importlib.metadata import Distribution
from pathlib import Path

import pytest

__all__ = ["hide", "pretend"]


class _Without(MetaPathFinder):
    """Finds on the path what is not hidden."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._modules = set(modules)

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] in self._modules:
            return None
        return PathFinder.find_spec(fullname, path, target)

    def find_distributions(self, *arguments, **named) -> Iterable[Distribution]:
        for found in PathFinder.find_distributions(*arguments, **named):
            if str(found.metadata["Name"]).replace("-", "_") not in self._modules:
                yield found


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make modules of these names, and the distributions of the same names, not to be found."""
    without = _Without(modules)
    finders = [without if finder is PathFinder else finder for finder in sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)
    for module in modules:
        monkeypatch.delitem(sys.modules, module, raising=False)


def pretend(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    distribution: str,
    version: str,
    requires: Iterable[str] = (),
) -> None:
    """Make a package of this name and version be found before all others."""
    module = distribution.replace("-", "_")
    (folder / module).mkdir(parents=True)
    (folder / module / "__init__.py").write_text("raise ImportError('this package is a fake')\n")
    info = folder / f"{module}-{version}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(str(folder))
