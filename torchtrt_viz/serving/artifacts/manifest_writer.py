"""Manifests are written on a thread of their own: a slow disk holds nobody up."""

from __future__ import annotations

import threading
import time

from torchtrt_viz.serving.artifacts.session_manifest import SessionBook
from torchtrt_viz.serving.contract.control_thread import ControlThread

__all__ = ["ManifestWriter"]

_EVERY_S = 0.5
_IDLE_S = 5.0


class ManifestWriter:
    """Writes the manifests of sessions that have changed; its thread lives while there is work."""

    def __init__(self) -> None:
        self._waiting: dict[SessionBook, bool] = {}  # whether it is to be written at once
        self._writing = False
        self._changed = threading.Condition()
        self._thread: ControlThread | None = None
        self._written = self._busy = 0.0

    def want(self, book: SessionBook, *, now: bool = True) -> None:
        """Have a manifest written: at once, or with what else comes within half a second."""
        with self._changed:
            self._waiting[book] = now or self._waiting.get(book, False)
            if self._thread is None or not self._thread.alive:
                self._thread = ControlThread("torchtrt_viz-manifests", self._work, self._failed)
        self._thread.wake()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything that was wanted is written; False when time ran out."""
        with self._changed:
            for book in self._waiting:
                self._waiting[book] = True
            thread = self._thread
        if thread is None:
            return True
        thread.wake()
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._writing, timeout)

    def _work(self) -> float | None:
        now = time.monotonic()
        with self._changed:
            due = now - self._written >= _EVERY_S
            books = [book for book, at_once in self._waiting.items() if at_once or due]
            for book in books:
                del self._waiting[book]
            self._writing = bool(books)
            if not books and not self._waiting and now - self._busy > _IDLE_S:
                self._thread = None
                return None
        for book in books:
            book.write()
        if books:
            self._written = self._busy = time.monotonic()
        with self._changed:
            self._writing = False
            self._changed.notify_all()
            if any(self._waiting.values()):
                return 0.0
            return _EVERY_S if self._waiting else _IDLE_S

    def _failed(self, error: BaseException) -> None:
        """Let the next change begin a new thread; the manifest's own error says what went wrong."""
        with self._changed:
            self._thread, self._writing = None, False
            self._changed.notify_all()
