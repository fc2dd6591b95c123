"""Progress of long loads: nothing for the first second, then a bar (notebook and terminal)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "watching"]

Progress = Callable[[int, "int | None"], None]
"""Called now and then with (bytes read, bytes in all or None)."""

_QUIET_SECONDS = 1.0


class _Bar:
    """A rich progress bar that appears only when the load turns out to be long."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._bar: object | None = None
        self._task: object | None = None

    def __call__(self, done: int, total: int | None) -> None:
        if self._bar is None:
            if time.monotonic() - self._begin < _QUIET_SECONDS:
                return
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                TextColumn,
                TimeRemainingColumn,
            )
            from rich.progress import (
                Progress as RichProgress,
            )

            self._bar = RichProgress(
                TextColumn("loading"),
                BarColumn(),
                DownloadColumn(),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("load", total=total)
        self._bar.update(self._task, completed=done, total=total)  # type: ignore[attr-defined]

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()  # type: ignore[attr-defined]


@contextmanager
def watching(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Turn the ``progress`` argument of load() into a function, and close what it opened."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield progress
