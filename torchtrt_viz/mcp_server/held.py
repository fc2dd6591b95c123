"""Traces that were loaded stay loaded while they fit a bound; each file is loaded once, whoever asks."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torchtrt_viz.errors import OptionError

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.progress import Progress
    from torchtrt_viz.session import Session
    from torchtrt_viz.trace import Trace

__all__ = ["Held", "Key"]

Key = tuple[str, int | None]
"""A path, and the rank of a session; None: all of it."""


@dataclass
class _Entry:
    state: tuple[int, int, int]
    lock: threading.RLock = field(default_factory=threading.RLock)
    loaded: Trace | Session | None = None
    size: int = 0


class Held:
    """Loaded traces and sessions, the ones used least recently are let go first.

    Parameters
    ----------
    limit
        Bytes that what is held may take; what is larger by itself is loaded for each question.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def using(
        self, path: Path, rank: int | None = None, progress: Progress | None = None
    ) -> Iterator[Trace | Session]:
        """Hold what a path holds, loaded once, for one question at a time; a changed file is loaded again.

        Raises
        ------
        TorchTrtVizError
            When it cannot be loaded.
        OptionError
            For a rank that a session does not have, or of what is no session.
        """
        state = _state(path)
        key = (str(path), rank)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.state != state:
                entry = self._entries[key] = _Entry(state)
            self._entries.move_to_end(key)
        with entry.lock:
            if entry.loaded is None:
                try:
                    entry.loaded = self._load(path, rank, progress)
                except BaseException:
                    with self._lock:
                        if self._entries.get(key) is entry:
                            del self._entries[key]
                    raise
            loaded = entry.loaded
            yield loaded
            entry.size = size_of(loaded)  # a session's tables, and columns made when asked for, have come
        self._let_go()

    @property
    def bytes(self) -> int:
        """Bytes that what is held takes, about."""
        with self._lock:
            return sum(entry.size for entry in self._entries.values())

    def _load(self, path: Path, rank: int | None, progress: Progress | None) -> Trace | Session:
        # slow to import: it needs pandas
        from torchtrt_viz.files import load
        from torchtrt_viz.session import Session

        if rank is None:
            return load(path, progress=progress or False)
        with self.using(path, None, progress) as whole:
            if not isinstance(whole, Session):
                raise OptionError("rank", rank, "left out: this is one recording, not a session of ranks")
            try:
                return whole.trace(rank)
            except KeyError as error:
                raise OptionError("rank", rank, f"a rank of the session: {error}") from error

    def _let_go(self) -> None:
        with self._lock:
            total = sum(entry.size for entry in self._entries.values())
            for key in list(self._entries):
                if total <= self.limit:
                    return
                entry = self._entries[key]
                if entry.loaded is not None:
                    total -= entry.size
                    del self._entries[key]


def size_of(loaded: Trace | Session) -> int:
    """Return about how many bytes the frames of a trace, or a session's tables, take."""
    frames = [
        frame
        for name in ("spans", "tracks", "instants", "counters", "flows")
        if (frame := getattr(loaded, name, None)) is not None
    ]
    overview = getattr(loaded, "computed", {}).get("overview")
    made = [] if overview is None else list(vars(overview).values())
    frames += [frame for frame in made if hasattr(frame, "memory_usage")]
    return sum(int(frame.memory_usage(index=False, deep=False).sum()) for frame in frames) + 2**16


def _state(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file, or one in a folder, does."""
    if path.is_file():
        found = path.stat()
        return 1, found.st_size, found.st_mtime_ns
    count = size = newest = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                found = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            count, size, newest = count + 1, size + found.st_size, max(newest, found.st_mtime_ns)
    return count, size, newest
