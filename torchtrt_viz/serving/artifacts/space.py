"""Space for a recording, checked before the export: an export that fails cannot be repeated."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["available_memory_share", "estimated_trace_bytes", "free_bytes", "resident_bytes", "roomiest"]

_JSON_PER_RESIDENT = 3
"""Upper estimate of the bytes of JSON per byte of recording in memory; measured: 1.2 to 2.5."""
_LEAST_BYTES = 8 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Memory of this process, in bytes."""
    with open("/proc/self/statm", "rb") as stream:
        return int(stream.read().split()[1]) * _PAGE


def available_memory_share() -> float:
    """Share of the machine's memory that is available without swapping."""
    found: dict[bytes, int] = {}
    with open("/proc/meminfo", "rb") as stream:
        for line in stream:
            key, _, rest = line.partition(b":")
            if key in (b"MemTotal", b"MemAvailable"):
                found[key] = int(rest.split()[0])
            if len(found) == 2:
                break
    return found.get(b"MemAvailable", 1) / max(found.get(b"MemTotal", 1), 1)


def estimated_trace_bytes(resident_before: int) -> int:
    """Return an upper estimate of the size of the export of what was recorded since."""
    return _LEAST_BYTES + _JSON_PER_RESIDENT * max(0, resident_bytes() - resident_before)


def free_bytes(folder: Path) -> int:
    """Space for this user on the disk of a folder (or of its nearest ancestor that exists)."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def roomiest(first: Path, others: tuple[Path, ...], needed: int) -> Path:
    """Return ``first`` if it has the space, else the first of the others that has, else the one with most."""
    for folder in (first, *others):
        if free_bytes(folder) >= needed:
            return folder
    return max((first, *others), key=free_bytes)
