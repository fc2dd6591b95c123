"""The capture of one cell or statement: begun before it, ended after it whatever happens, then shown.

The functions here are what a wrapped cell calls (see `torchtrt_viz.magic.cell`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from torchtrt_viz.capture import registry
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.magic.options import MAGIC, MagicOptions, parse
from torchtrt_viz.magic.output import check_target, deliver, reference

if TYPE_CHECKING:
    from torchtrt_viz.captures import Capture

__all__ = ["CaptureSession", "cell", "display", "forget", "keep", "take"]

_active: list[CaptureSession] = []
_values: list[Any] = []
_waiting: list[tuple[Any, Callable[[], None]]] = []


def cell(line: str, nested: bool = False) -> CaptureSession:
    """Return the context in which a cell with this magic line runs."""
    from IPython.core.getipython import get_ipython

    return CaptureSession(get_ipython(), line, is_cell=True, nested=nested)


def keep(value: Any) -> None:
    """Carry the value of a cell's last expression out of its block."""
    _values.append(value)


def take() -> Any:
    """Return the value that `keep` carried: the statement that calls this is displayed."""
    return _values.pop() if _values else None


def display(value: Any) -> None:
    """Display a value now, as an expression statement does where every one is shown."""
    sys.displayhook(value)


def forget(shell: Any) -> None:
    """Drop captures that are waiting to be shown."""
    for waiting_shell, callback in list(_waiting):
        if waiting_shell is shell:
            _withdraw(shell, callback)


class CaptureSession:
    """A capture around a piece of code, as a context manager.

    Parameters
    ----------
    shell
        The IPython shell.
    line
        The magic's line.
    is_cell
        Whether a whole cell runs (its output comes first, then the report), or a statement.
    nested
        Whether the cell was marked twice.
    """

    def __init__(self, shell: Any, line: str, *, is_cell: bool, nested: bool = False) -> None:
        self.shell = shell
        self.line = line
        self.is_cell = is_cell
        self.nested = nested
        self.options: MagicOptions | None = None
        self.capture: Capture | None = None
        self._reference: Any = None

    @property
    def name(self) -> str:
        """How messages call the magic."""
        return f"%%{MAGIC}" if self.is_cell else f"%{MAGIC}"

    def __enter__(self) -> CaptureSession:
        __tracebackhide__ = True
        from IPython.core.error import UsageError

        # slow to import: it needs numpy
        from torchtrt_viz.captures import profile

        _close_orphans()
        options = parse(self.line, cell=self.is_cell, expand=self.shell.var_expand)
        if self.nested:
            raise UsageError(f"{self.name}: a cell can be captured once; remove the second {self.name}")
        if not _active:
            _values.clear()
        try:
            if options.save is not None:
                check_target(Path(options.save), options.force)
            if options.compare is not None:
                self._reference = reference(options.compare, self.shell.user_ns)
            capture = profile(**_keywords(options))
            capture.start()
        except TorchTrtVizError as error:
            raise UsageError(f"{self.name}: {error}") from None
        self.options, self.capture = options, capture
        capture.started_at = f"{self.name} in cell [{self.shell.execution_count}]"
        _active.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        assert self.capture is not None
        try:
            self.capture.__exit__(kind, error, trace)
        except TorchTrtVizError as failure:
            print(f"{self.name}: {failure}", file=sys.stderr)
        finally:
            if self in _active:
                _active.remove(self)
        if self.options is not None and self.options.out is not None:
            self.shell.user_ns[self.options.out] = self.capture
        if error is None and self.is_cell:
            _when_done(self.shell, self.report)  # after the cell's own result
        else:
            self.report()  # before the traceback

    def report(self) -> None:
        """Show the capture and write what was asked for; a failure prints one line and stops nothing."""
        if self.capture is None or self.options is None or self.capture.state != "stopped":
            return
        try:
            if self.options.capture.with_stack:
                _clean(self.capture)
            deliver(self.capture, self.options, self.shell, self._reference)
        except TorchTrtVizError as failure:
            print(f"{self.name}: {failure}", file=sys.stderr)


def _clean(capture: Capture) -> None:
    """Leave the frames of the kernel and of the capture out of the capture's trace."""
    # slow to import: it needs numpy
    from torchtrt_viz.magic.frames import without_own_frames

    trace = without_own_frames(capture.trace, round(capture.wall_seconds * 1e9))
    vars(capture)["trace"] = trace  # where its cached property keeps it


def _keywords(options: MagicOptions) -> dict[str, Any]:
    values = options.capture.as_dict()
    activities = values["activities"]
    values["activities"] = activities if isinstance(activities, str) else tuple(activities)
    return values


def _close_orphans() -> None:
    """End captures whose cell is over: an interrupt may have struck while one was being ended."""
    running = registry.running()
    for session in list(_active):
        # a session whose capture is not the running one any more cannot end again
        if session.capture is not running or session.capture is None:
            _active.remove(session)
    if running is None or any(session.capture is running for session in _active):
        return
    if running.started_at.startswith((f"%%{MAGIC} ", f"%{MAGIC} ")):
        try:
            running.stop()
        except TorchTrtVizError as failure:
            print(f"%%{MAGIC}: an interrupted capture could not be ended: {failure}", file=sys.stderr)


def _when_done(shell: Any, callback: Callable[[], None]) -> None:
    """Call a function once, when the cell that is running has shown its result."""

    def once() -> None:
        _withdraw(shell, once)
        callback()

    _waiting.append((shell, once))
    shell.events.register("post_execute", once)


def _withdraw(shell: Any, callback: Callable[[], None]) -> None:
    if (shell, callback) in _waiting:
        _waiting.remove((shell, callback))
        shell.events.unregister("post_execute", callback)
