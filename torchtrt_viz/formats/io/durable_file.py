"""Small files written so that a reader, or a restart, sees either all of them or nothing."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["fsync_folder", "write_whole"]


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file in one step.

    Parameters
    ----------
    durable
        Also survive a loss of power; without it only the loss of the process. Takes some milliseconds.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(3).hex()}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        fsync_folder(path.parent)


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power, where the file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems refuse it for folders
    finally:
        os.close(descriptor)
