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
from typing import Any

import pytest

__all__ = ["hide", "pretend"]


class _Without(MetaPathFinder):
    """Finds what another finder does, but for what is hidden."""

    def __init__(self, finder: Any, modules: Iterable[str]) -> None:
        self._finder = finder
        self._modules = set(modules)

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] in self._modules or not hasattr(self._finder, "find_spec"):
            return None
        return self._finder.find_spec(fullname, path, target)

    def find_distributions(self, *arguments, **named) -> Iterable[Distribution]:
        # the package importlib_metadata, once imported, takes this from PathFinder and adds a finder
        find = getattr(self._finder, "find_distributions", None)
        for found in find(*arguments, **named) if find else ():
            if str(found.metadata["Name"]).replace("-", "_") not in self._modules:
                yield found


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make modules of these names, and the distributions of the same names, not to be found."""
    finders = [
        _Without(finder, modules) if finder is PathFinder or hasattr(finder, "find_distributions") else finder
        for finder in sys.meta_path
    ]
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
