"""Whether torch.profiler really wrote a trace, told from the file's own bytes.

An export of torch 2.13 to a full disk or into a missing folder returns normally, and cannot be repeated.
torch writes to ``<name>.tmp``, renames that when it is done, and ends the JSON with its ``traceName``.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["export_damage", "unfinished_export"]

_TAIL = 4096


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
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - _TAIL))
        tail = stream.read().rstrip()
    if b'"traceName"' not in tail or not tail.endswith(b"}"):
        return f"the trace ends early, after {size} bytes: is the disk full?"
    return None
