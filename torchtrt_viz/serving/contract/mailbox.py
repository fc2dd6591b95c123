"""Calls from other threads, run on the thread that owns what they touch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from torchtrt_viz.serving.contract.errors import ControlTimeoutError

__all__ = ["Mailbox"]

T = TypeVar("T")


class _Call:
    """A call that waits for its owner thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self._guard = threading.Lock()
        self._taken = False

    def take(self) -> bool:
        """Claim the call, to run it or to give it up; True for whoever comes first."""
        with self._guard:
            first = not self._taken
            self._taken = True
            return first


class Mailbox:
    """Runs functions on one thread.

    The owner calls :meth:`deliver` now and then (between engine steps, and while idle); an empty mailbox
    costs one check of a queue. Until a thread takes ownership, callers run their functions themselves.
    """

    def __init__(self) -> None:
        self._owner: int | None = None
        self._calls: deque[_Call] = deque()
        self.waiting = self._calls  # true while a call waits: what an engine's step looks at

    def own(self) -> None:
        """Make the calling thread the owner."""
        self._owner = threading.get_ident()

    @property
    def owned(self) -> bool:
        """Whether a thread has taken ownership."""
        return self._owner is not None

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread is the owner (or there is none)."""
        return self._owner is None or self._owner == threading.get_ident()

    def run(self, function: Callable[[], T], timeout: float) -> T:
        """Run a function on the owner's thread and return its result; errors are raised here.

        Raises
        ------
        ControlTimeoutError
            When the owner has not begun within ``timeout`` seconds; the function will then never run.
        """
        if self.is_mine:
            return function()
        call = _Call(function)
        self._calls.append(call)
        if not call.done.wait(timeout):
            if call.take():
                raise ControlTimeoutError(
                    f"the engine's thread did not take the request within {timeout:g} s: it has to call "
                    "poll() while idle and step() while working"
                )
            call.done.wait()  # it is running: its result is worth waiting for
        if call.error is not None:
            raise call.error
        result: T = call.value
        return result

    def deliver(self) -> None:
        """Run what is waiting; called by the owner."""
        while self._calls:
            call = self._calls.popleft()
            if not call.take():
                continue
            try:
                call.value = call.function()
            except BaseException as error:
                call.error = error
                if not isinstance(error, Exception):
                    raise
            finally:
                call.done.set()
