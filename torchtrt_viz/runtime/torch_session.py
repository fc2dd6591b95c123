"""torch's one profiling session of a process: who holds it, and who takes it away.

torch.profiler has a single session per process and guards it against nobody (torch 2.13):

- a second profiler that starts, even one that only warms up, ends the first without an error; stopping the
  first afterwards ends the second one's session, and exporting it is a segmentation fault;
- one that was started on another thread leaves the first thread's recording switched on; stopping that, or
  starting anew there, fails or is a segmentation fault;
- a process that ends while it records, and a fork of it that goes on recording, crash.

So one holder at a time claims the session here, torch's own functions are watched while it does, and what a
lost recording left behind is cleaned up when nobody else records.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from torchtrt_viz.runtime.modules import loaded_torch

__all__ = [
    "Holder",
    "acting",
    "claim",
    "forget_steps",
    "give_up",
    "give_up_range",
    "holder",
    "others_record",
    "profiler_active",
    "release",
    "replace_session",
    "session_is_gone",
    "steps_are_counted",
    "sweep",
]

_WATCHED = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")
_STEPS = "ProfilerStep"
_EXIT_WAIT_S = 5.0


class Holder(Protocol):
    """Who may hold the session."""

    owner: str
    """Who it is, for messages."""

    def others_called(self, function: str) -> None:
        """Be told that somebody else has called one of torch's functions, on the calling thread."""

    def in_child(self) -> None:
        """Be told that this is a fork of the process that records."""

    def at_exit(self) -> None:
        """Leave torch in a state in which the process can end."""


_abandoned: list[Any] = []
_lock = threading.RLock()
_holder: Holder | None = None
_acting = False
_others_prepared = False
_restore: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
# threads on which torch believes that a recording of ours goes on, although its session is gone
_left: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@contextlib.contextmanager
def acting() -> Iterator[None]:
    """Call torch as the holder; nobody else gets in between."""
    global _acting
    with _lock:
        before, _acting = _acting, True
        try:
            yield
        finally:
            _acting = before


def holder() -> Holder | None:
    """Return who holds the session, None for nobody of this package."""
    return _holder


def claim(by: Holder) -> None:
    """Make ``by`` the holder, and watch torch; call it inside :func:`acting`, when nobody records."""
    global _holder, _others_prepared
    assert _holder is None, "the session has a holder"
    _holder, _others_prepared = by, False
    _watch()


def release(by: Holder) -> None:
    """End the claim of ``by``, if it has one."""
    global _holder, _others_prepared
    with _lock:
        if _holder is by:
            _holder, _others_prepared = None, False
            _unwatch()


def profiler_active() -> bool:
    """Tell whether a torch profiler is recording or warming up in this process, whoever started it."""
    with _lock:
        return _holder is not None or others_record()


def others_record() -> bool:
    """Tell whether somebody else's torch profiler records or warms up; not for who records right now."""
    torch = loaded_torch()
    if torch is None:
        return False
    if torch.autograd.profiler._is_profiler_enabled or _others_prepared:
        return True
    if torch._C._autograd._profiler_enabled() and threading.current_thread() not in _left:
        return True
    return _holder is None and _somebody_warms_up(torch)


def _somebody_warms_up(torch: Any) -> bool:
    """Look for a profiler with a schedule in its warm-up: torch itself does not tell of it."""
    if not steps_are_counted():
        return False  # every torch.profiler.profile was left as a context manager, or there was none
    kinds = [torch.profiler.profile, *torch.profiler.profile.__subclasses__()]
    warming = torch.profiler.ProfilerAction.WARMUP
    for found in gc.get_referrers(*kinds):  # its cost is why the steps are looked at first
        if (
            type(found) in kinds
            and found.current_action is warming
            and not any(found is a for a in _abandoned)
        ):
            inner = found.profiler
            if inner is not None and inner.kineto_results is None:
                return True
    return False


def steps_are_counted() -> bool:
    """Tell whether a torch profiler was made and not left as a context manager, as far as torch remembers."""
    tracker = sys.modules["torch.autograd.profiler"].KinetoStepTracker
    steps = getattr(tracker, "_step_dict", None)
    return steps is None or _STEPS in steps


def forget_steps() -> None:
    """Take back the count of steps of a profiler that is not left as a context manager."""
    if not _others_prepared:
        sys.modules["torch.autograd.profiler"].KinetoStepTracker.erase_step_count(_STEPS)


def give_up(profiler: Any) -> None:
    """Keep a torch profiler whose session is gone, and do nothing with it ever again.

    Ending its step's range, which its destruction would do as well, writes into the memory of its session.
    """
    _abandoned.append(profiler)


def give_up_range(profiler: Any) -> None:
    """Do the same with the range of a profiler's current step only."""
    if profiler.step_rec_fn is not None:
        _abandoned.append(profiler.step_rec_fn)
        profiler.step_rec_fn = None


# -- watching torch ------------------------------------------------------------------------------------------


def _watch() -> None:
    """Put a look at the caller around torch's functions, for as long as somebody holds the session."""
    module = sys.modules["torch.autograd.profiler"]
    for name in _WATCHED:
        original = getattr(module, name, None)
        if original is not None:
            replacement = _watched(name, original)
            setattr(module, name, replacement)
            _restore[name] = (original, replacement)


def _watched(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*arguments: Any, **keywords: Any) -> Any:
        global _others_prepared
        with _lock:
            done = original(*arguments, **keywords)
            if not _acting and _holder is not None:
                _others_prepared = name == "_prepare_profiler"
                _holder.others_called(name)
            return done

    return call


def _unwatch() -> None:
    module = sys.modules["torch.autograd.profiler"]
    for name, (original, replacement) in _restore.items():
        if getattr(module, name) is replacement:
            setattr(module, name, original)
    _restore.clear()


# -- what a lost recording leaves ----------------------------------------------------------------------------


def session_is_gone(thread: threading.Thread) -> None:
    """Note that the holder's session was taken, which torch's own flag does not know yet.

    Parameters
    ----------
    thread
        Where it was recorded. torch ends the recording of the thread that takes the session, and of no other.
    """
    _set_flag(False)
    if thread is not threading.current_thread():
        _left.add(thread)


def sweep() -> None:
    """End the recording that a lost session left on the calling thread, unless somebody else records."""
    thread = threading.current_thread()
    if thread not in _left:
        return
    with acting():
        if others_record():
            return
        _left.discard(thread)
        torch = loaded_torch()
        if torch is None or not torch._C._autograd._profiler_enabled():
            return
        # without a session under it this would be a segmentation fault
        module = torch.autograd.profiler
        inner = module.profile(use_kineto=True)
        module._prepare_profiler(inner.config(create_trace_id=True), inner.kineto_activities)
        module._disable_profiler()


def replace_session() -> None:
    """End a session that can no longer be stopped where it was started, by one that can."""
    torch = loaded_torch()
    if torch is None:
        return
    with acting():
        inner = torch.autograd.profiler.profile(use_kineto=True)
        inner._prepare_trace()
        inner._start_trace()
        inner.__exit__(None, None, None)


def _set_flag(value: bool) -> None:
    torch = loaded_torch()
    if torch is not None:
        torch.autograd.profiler._is_profiler_enabled = value


# -- forks and the end of the process ------------------------------------------------------------------------


def _in_child() -> None:
    """In a fork: nobody holds anything here, and the recording that was inherited is not used."""
    global _lock, _holder, _acting, _others_prepared
    _lock, _acting, _others_prepared = threading.RLock(), False, False
    inherited, _holder = _holder, None
    if inherited is not None:
        _unwatch()
        inherited.in_child()
        _set_flag(False)
        _left.add(threading.current_thread())


def _at_exit() -> None:
    """Stop what still records: a process that ends while torch records crashes in torch's destructors."""
    lock = _lock
    if not lock.acquire(timeout=_EXIT_WAIT_S):
        return
    try:
        if _holder is not None:
            _holder.at_exit()
        sweep()
    finally:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_exit)
