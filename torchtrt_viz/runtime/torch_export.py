"""Whether torch.profiler really wrote a trace, told from the file's own bytes.

An export of torch 2.13 to a full disk or into a missing folder returns normally, and cannot be repeated.
torch writes to ``<name>.tmp``, renames that when it is done, and ends the JSON with its ``traceName``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["adopt_unfinished", "export_damage", "plain_path", "unfinished_export"]

_TAIL = 4096
_MANGLED = re.compile(r'[\\"\x00-\x1f\x7f]')


def unfinished_export(path: Path) -> Path:
    """Return the file that torch writes to before it renames it to ``path``."""
    return path.with_name(path.name + ".tmp")


def export_damage(path: Path) -> str | None:
    """Return what is wrong with an exported trace, None when it was written whole."""
    unfinished = unfinished_export(path)
    if not path.is_file():
        if unfinished.exists():
            size = unfinished.stat().st_size
            return f"only a part of the trace was written ({size} bytes): is the disk full?"
        return "no file was written: is the disk full, or the folder gone?"
    return _cut(path)


def adopt_unfinished(path: Path) -> bool:
    """Give a trace its name where torch had written all of it and ended before renaming it.

    Returns
    -------
    bool
        Whether there was such a file.

    Raises
    ------
    OSError
        When it cannot be renamed.
    """
    unfinished = unfinished_export(path)
    if path.exists() or not unfinished.is_file() or _cut(unfinished) is not None:
        return False
    unfinished.rename(path)
    return True


@contextmanager
def plain_path(path: Path) -> Iterator[str]:
    """Return another name of a file to be written, where torch would not take its own.

    torch 2.13 takes backslashes for separators, and writes the name into the trace without escaping quotes
    and control characters. The other name goes over the folder's descriptor.

    Raises
    ------
    OSError
        When the folder cannot be opened.
    """
    if not _MANGLED.search(str(path)):
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


def _cut(path: Path) -> str | None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - _TAIL))
        tail = stream.read().rstrip()
    if b'"traceName"' not in tail or not tail.endswith(b"}"):
        return f"the trace ends early, after {size} bytes: is the disk full?"
    return None
