"""Room for Torch-TensorRT's own profiling operators, when it is loaded after ours.

``torch.ops.tensorrt.set_profile_execution`` and its companions can be defined once per process. Ours are
defined where nobody has them; a Torch-TensorRT that brings them and is loaded later would fail to load.
So ours are withdrawn whenever another library of operators is loaded (``torch.ops.load_library``), and
while ``torch_tensorrt`` is imported, which loads its library in several ways; what was set is handed on
to the operators that appear, and where none do, ours come back. From then on Python's calls of their
setters reach our engines too: there is one switch, whoever was loaded first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from typing import Any

from torchtrt_viz._native import native

__all__ = ["guard", "stepping_aside", "theirs"]

_PACKAGE = "torch_tensorrt"
_SETTINGS = ("path_prefix", "format", "execution")
_lock = RLock()
_depth = 0


@contextmanager
def stepping_aside() -> Iterator[None]:
    """Withdraw our profiling operators for a block that may load a library with its own.

    After the block, its operators hold the settings that ours held; without any, ours are back. Blocks may
    nest; the outermost counts.
    """
    import torch

    global _depth
    ours = torch.ops.torchtrt_viz
    with _lock:
        _depth += 1
        held = _settings(torch) if _depth == 1 and ours.withdraw_profile_ops() else None
        if held is not None:
            _forget(torch)
        try:
            yield
        finally:
            _depth -= 1
            if held is not None and not ours.define_profile_ops():
                _hand_on(torch, held)
            if _depth == 0:
                _mirror(torch)


def _settings(torch: Any) -> dict[str, Any]:
    held: dict[str, Any] = native("capture").get_profile()
    return held


def _forget(torch: Any) -> None:
    """Drop what ``torch.ops.tensorrt`` remembers of the operators: it would be the old ones for ever."""
    namespace = torch.ops.tensorrt
    for name in [f"{verb}_profile_{setting}" for verb in ("set", "get") for setting in _SETTINGS]:
        vars(namespace).pop(name, None)
        listed = getattr(namespace, "_dir", None)
        if isinstance(listed, list) and name in listed:
            listed.remove(name)


def _hand_on(torch: Any, held: dict[str, Any]) -> None:
    """Set the other library's operators as ours were, where the user has set anything."""
    if not held["generation"]:
        return
    operators = torch.ops.tensorrt
    if held["path_prefix"]:
        operators.set_profile_path_prefix(held["path_prefix"])
    if held["format"] in ("perfetto", "trex"):
        operators.set_profile_format(held["format"])
    operators.set_profile_execution(bool(held["execution"]))


class _Setter:
    """A setter of ``torch.ops.tensorrt`` with something of ours around the call; the rest is as it was."""

    def __init__(self, packet: Any, setting: str) -> None:
        self.packet = packet
        self._setting = setting

    def __getattr__(self, name: str) -> Any:
        return getattr(self.packet, name)


class _Both(_Setter):
    """A setter of another library that sets ours as well."""

    def __call__(self, value: Any) -> None:
        self.packet(value)
        native("capture").set_profile(**{self._setting: value})


class _Refusing(_Setter):
    """A setter of ours that refuses a value with ValueError, whatever torch makes of an operator's failure.

    torch 2.15 makes a RuntimeError of it, with its own trace behind the message.
    """

    def __call__(self, *arguments: Any, **named: Any) -> None:
        try:
            self.packet(*arguments, **named)
        except RuntimeError as error:
            refused = re.search(r"option 'profile [^\n]*", str(error))
            if refused is None:
                raise
            raise ValueError(refused[0]) from error


def _mirror(torch: Any) -> None:
    """Put our part around the setters that are defined now."""
    namespace = torch.ops.tensorrt
    kind = _Refusing if torch.ops.torchtrt_viz.profile_ops_are_ours() else _Both
    for setting in _SETTINGS:
        packet = getattr(namespace, f"set_profile_{setting}", None)
        if packet is not None and not isinstance(packet, kind):
            bare = packet.packet if isinstance(packet, _Setter) else packet
            setattr(namespace, f"set_profile_{setting}", kind(bare, setting))


def theirs(torch: Any, name: str) -> Any:
    """Return an operator of the other library alone, without ours behind it."""
    found = getattr(torch.ops.tensorrt, name)
    return found.packet if isinstance(found, _Setter) else found


class _Loading(Loader):
    """The loader of ``torch_tensorrt``, with our operators withdrawn while it runs."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with stepping_aside():
            self._loader.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # resources, source and so on are its own


class _Finder(MetaPathFinder):
    """Finds ``torch_tensorrt`` as the other finders do, and wraps its loader."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _PACKAGE:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loading(spec.loader)
                return spec
        return None


def guard(torch: Any, own: str) -> None:
    """Step aside from now on for what is loaded later; ``own`` is the library that needs no room.

    Called once, after our operators are loaded.
    """
    load = torch.ops.load_library

    @wraps(load)
    def load_library(path: Any, *args: Any, **options: Any) -> Any:
        if str(path) == own:
            return load(path, *args, **options)
        with stepping_aside():
            return load(path, *args, **options)

    torch.ops.load_library = load_library
    if _PACKAGE not in sys.modules:
        sys.meta_path.insert(0, _Finder())
    _mirror(torch)
