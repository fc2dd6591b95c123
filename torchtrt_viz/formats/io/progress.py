"""Progress of long loads: nothing for the first second, then a bar in a notebook or a line in a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

__all__ = ["WHERE_SEEN", "Progress", "WhereSeen", "watching"]

Progress = Callable[[int, "int | None"], None]
"""Called now and then with (bytes read, bytes in all or None)."""


class WhereSeen(Enum):
    """The type of `WHERE_SEEN`."""

    WHERE_SEEN = "where somebody sees it"


WHERE_SEEN = WhereSeen.WHERE_SEEN
"""Show it in notebooks and terminals; where stderr goes to a file or a pipe, show nothing."""

_QUIET_SECONDS = 1.0
_BETWEEN_SECONDS = 0.2  # a notebook gets a message for each change


class _Line:
    """A line on stderr that appears only when the load turns out to be long, and goes when it ends."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._over = False  # a session reads its ranks when asked, after its load: nobody would end the line
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        if self._over:
            return
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
        self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        self._over = True
        if self._bar is not None:
            self._bar.stop()


class _Cell:
    """A bar below the cell of a notebook; an empty output is left of it."""

    def __init__(self) -> None:
        self._begin = self._last = time.monotonic()
        self._over = False  # as above
        self._handle: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if self._over or now - self._begin < _QUIET_SECONDS or now - self._last < _BETWEEN_SECONDS:
            return
        self._last = now
        words = f"loading: {done / 1e6:,.0f} MB" + ("" if total is None else f" of {total / 1e6:,.0f} MB")
        share = "" if not total else f' value="{min(1.0, done / total):.3f}"'
        bundle = {"text/plain": words, "text/html": f"<progress{share}></progress> {words}"}
        if self._handle is None:
            from IPython.display import display

            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)

    def close(self) -> None:
        self._over = True
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")  # a notebook has imported it
    running = None if shell is None else shell.get_ipython()
    return getattr(running, "kernel", None) is not None


@contextmanager
def watching(progress: Progress | WhereSeen | bool | None) -> Iterator[Progress | None]:
    """Turn what says how to show progress into a function, and close what it opened.

    Parameters
    ----------
    progress
        A function of (bytes read, bytes in all or None); `WHERE_SEEN`; True: also where nobody may see it;
        None or False: nothing.
    """
    shown: _Line | _Cell | None = None
    if progress is True or progress is WHERE_SEEN:
        if _in_notebook():
            shown = _Cell()
        elif progress is True or sys.stderr.isatty():
            shown = _Line()
    elif callable(progress):
        yield progress
        return
    try:
        yield shown
    finally:
        if shown is not None:
            shown.close()
