"""How many recordings are parsed at a time on one machine, over all of a user's processes.

A semaphore for processes that have nothing in common but the machine: one locked file per place. The kernel
releases a lock when its process ends, by SIGKILL too. What is ready-made lacks that, or the count:

- POSIX semaphores stay taken when their holder is killed, and those of ``multiprocessing`` have no name by
  which an unrelated process finds them;
- System V semaphores can undo what a killed process did, but no module of Python's has them;
- `filelock` is one lock without a count: the loop below would stay, around a dependency in place of a call.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from torchtrt_viz.serving.artifacts.file_lock import lock_file

__all__ = ["parse_slot"]

_POLL_S = 0.05
_mine: set[str] = set()
_guard = threading.Lock()


def _folder() -> Path | None:
    """Return the user's own folder for the slots' locks; None when it cannot be trusted or made."""
    folder = Path(tempfile.gettempdir()) / f"torchtrt_viz-slots-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        info = folder.lstat()
    except OSError:
        return None
    return folder if stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() else None


def _try(path: Path) -> IO[bytes] | None:
    # POSIX locks, not flock's: a forked child inherits none, and so cannot hold the slot for as long as it
    # lives. But they do not keep threads of one process apart, and closing any descriptor of the file gives
    # the lock up.
    with _guard:
        if path.name in _mine:
            return None
        stream = path.open("ab")
        try:
            free = lock_file(stream)
        except OSError:  # without locks nobody is counted
            free = True
        if not free:
            stream.close()
            return None
        _mine.add(path.name)
    return stream


@contextmanager
def parse_slot(slots: int, timeout: float) -> Iterator[None]:
    """Wait for one of ``slots`` slots and hold it; the slot of a killed process becomes free.

    After ``timeout`` seconds the block runs without a slot: too many parses at a time are better than none.
    """
    folder = _folder()
    held = None
    deadline = time.monotonic() + timeout
    while folder is not None and held is None and time.monotonic() < deadline:
        for number in range(slots):
            held = _try(folder / f"slot-{number}")
            if held is not None:
                break
        else:
            time.sleep(_POLL_S)
    try:
        yield
    finally:
        if held is not None:
            with _guard:
                held.close()
                _mine.discard(Path(held.name).name)
