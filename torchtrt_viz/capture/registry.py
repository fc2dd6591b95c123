"""Programs that live in the process, and the capture that is running: how the two find each other."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtrt_viz.capture.shared_types import RecordedProgram, RunningCapture

__all__ = ["lock", "programs", "register", "running", "set_running"]

#: Held while a capture starts or stops and while a program registers.
lock = threading.RLock()
_programs: weakref.WeakSet[RecordedProgram] = weakref.WeakSet()
_running: RunningCapture | None = None


def register(program: RecordedProgram) -> None:
    """Add a program that was just loaded; a capture that is running records it, with its loading."""
    with lock:
        _programs.add(program)
        if _running is not None:
            _running.include(program, 0)


def programs() -> list[RecordedProgram]:
    """Return the programs that are open, in no particular order."""
    with lock:
        return list(_programs)


def running() -> RunningCapture | None:
    """Return the capture that is running, None when there is none."""
    return _running


def set_running(capture: RunningCapture | None) -> None:
    """Say which capture is running."""
    global _running
    with lock:
        _running = capture
