"""Time that passes only when a test says so, in place of the module ``time`` of the modules under test."""

from __future__ import annotations

import time
from collections.abc import Callable


class FakeClock:
    """``monotonic`` is ``now``; what was put off with `at` is done when its time has come."""

    time_ns = staticmethod(time.time_ns)

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self._later: list[tuple[float, Callable[[], object]]] = []

    def perf_counter_ns(self) -> int:
        return round(self.now * 1e9)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        due = [action for when, action in self._later if when <= self.now]
        self._later = [later for later in self._later if later[0] > self.now]
        for action in due:
            action()

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do ``action`` so many seconds from now."""
        self._later.append((self.now + seconds, action))
