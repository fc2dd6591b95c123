"""The thread that does the slow part of control, so that an engine's step never waits for it.

Stores, pipes and files can be slow, stopped or gone. Whatever touches them runs on such a thread; the
engine's thread only sees a flag or a queue in memory.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

__all__ = ["ControlThread", "end_thread"]

_POLL_S = 0.02


class ControlThread:
    """Calls a function again and again on a daemon thread of its own.

    Parameters
    ----------
    name
        The thread's name.
    work
        Returns the seconds to wait until the next call (:meth:`wake` shortens them), None to end the thread.
    failed
        Called on the thread with what ``work`` raised; the thread ends then.

    Notes
    -----
    A fork has no such thread: there every method does nothing.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], float | None],
        failed: Callable[[BaseException], object],
    ) -> None:
        self._work = work
        self._failed = failed
        self._wake = threading.Event()
        self._forked = False
        _threads.add(self)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread is this one."""
        return threading.current_thread() is self._thread

    @property
    def alive(self) -> bool:
        """Whether it still works."""
        return not self._forked and self._thread.is_alive()

    def wake(self) -> None:
        """Let the next call come now."""
        if not self._forked:
            self._wake.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False when time ran out."""
        if self._forked or self.is_mine:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while (pause := self._work()) is not None:
                self._wake.wait(pause)
                self._wake.clear()
        except BaseException as error:
            self._failed(error)


def end_thread(thread: ControlThread, until: float, poll: Callable[[], object]) -> bool:
    """Wait for a thread that may itself be waiting for the calling one; False when time ran out.

    Parameters
    ----------
    until
        As of `time.monotonic`.
    poll
        Does what the thread waits for.
    """
    while not thread.join(_POLL_S):
        poll()
        if time.monotonic() >= until:
            return False
    return True


_threads: weakref.WeakSet[ControlThread] = weakref.WeakSet()


def _in_child() -> None:
    for thread in list(_threads):
        thread._forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
