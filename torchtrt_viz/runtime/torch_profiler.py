"""The one guard around torch.profiler, for captures and for serving.

Each rule stands for a failure of torch 2.13 that was reproduced, and that ``test_torch_profiler_guard.py``
runs: a second profiler silently takes the session over (see :mod:`~torchtrt_viz.runtime.torch_session`); a
second stop, followed by an export, crashes the process; a stop on another thread returns and has lost
everything; an exception in the trace callback makes the following steps crash; an export to a full disk or a
missing folder returns normally, and cannot be repeated; the first start of a process imports a compiler for
seconds; asking for CUDA without CUDA only warns.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import (
    CaptureActiveError,
    CaptureError,
    MissingDependencyError,
    OptionError,
    RecordingLostError,
    WrongThreadError,
)
from torchtrt_viz.runtime import torch_session
from torchtrt_viz.runtime.torch_export import export_damage, plain_path
from torchtrt_viz.runtime.torch_session import acting, profiler_active

__all__ = ["TorchRecording", "check_activities", "profiler_active", "quiet_kineto", "warm_up"]

_PHASES = {"NONE": "wait", "WARMUP": "warmup"}
_warmed = False


def _profiler_module(extra: str | None) -> Any:
    try:
        import torch.profiler  # optional, and slow to import
    except ImportError as error:
        raise MissingDependencyError("torch", extra, "record torch.profiler activity") from error
    return torch.profiler


def check_activities(names: Iterable[str], extra: str | None, where: str = "") -> tuple[str, ...]:
    """Return the activities if this torch records all of them here.

    Parameters
    ----------
    names
        In lower case.
    extra
        The extra of this package that installs torch, for the message where there is none; None for the
        torch of somebody else's engine.
    where
        What the message adds about the place.

    Raises
    ------
    MissingDependencyError
        Without torch.
    OptionError
        When this build of torch, or this machine, does not support one of them.
    """
    wanted = tuple(names)
    supported = {activity.name.lower() for activity in _profiler_module(extra).supported_activities()}
    if not supported.issuperset(wanted):
        known = ", ".join(sorted(supported))
        raise OptionError("activities", ",".join(wanted), f"here torch supports {known}{where}")
    return wanted


def warm_up(extra: str | None = "capture") -> None:
    """Do now what the first start of a profiler in a process would do in the middle of work (1 to 6 s)."""
    global _warmed
    profiler = _profiler_module(extra)
    with acting():
        if _warmed or profiler_active():
            return
        counted = torch_session.steps_are_counted()
        with warnings.catch_warnings(), quiet_kineto():
            warnings.simplefilter("ignore")
            first = profiler.profile(activities=[profiler.ProfilerActivity.CPU])
            first.start()
            first.stop()
        if not counted:
            torch_session.forget_steps()
        _warmed = True


@contextmanager
def quiet_kineto() -> Iterator[None]:
    """Keep kineto's progress lines off stderr; what goes wrong is checked from its files.

    The variable is read when the first profiler of the process is made. Who has set it keeps that setting.
    """
    name = "KINETO_LOG_LEVEL"
    if name in os.environ:
        yield
        return
    os.environ[name] = "6"
    try:
        yield
    finally:
        os.environ.pop(name, None)


def mark(name: str) -> None:
    """Put a mark into what is being recorded."""
    import torch  # optional, and slow to import

    with torch._C._profiler._RecordFunctionFast(name):
        pass


class TorchRecording:
    """One recording of torch.profiler from start to stop, used on the thread that starts it only.

    Parameters
    ----------
    owner
        Who records, for messages ("profile session 7").
    activities
        As :func:`check_activities` returned them.
    on_trace
        Called on the same thread with this recording when a cycle is complete; it may :meth:`export` it. An
        exception in it is kept in ``callback_error`` instead of being raised into torch.
    schedule
        Fields of :func:`torch.profiler.schedule`; None records from start to stop.
    metadata
        Text added to the trace's own metadata.
    record_shapes, with_stack, profile_memory, with_flops
        Of :class:`torch.profiler.profile`.

    Attributes
    ----------
    lost
        Why the recording is lost, None while it is not: then torch is neither stopped nor asked for an
        export.
    stop_s, export_s
        Seconds that torch took to collect the last cycle, and to write it. Both hold the interpreter.
    warnings
        What torch said about the options.
    """

    def __init__(
        self,
        owner: str,
        activities: tuple[str, ...],
        *,
        on_trace: Callable[[TorchRecording], None] | None = None,
        schedule: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
        record_shapes: bool = False,
        with_stack: bool = False,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        import torch.profiler  # optional, and slow to import

        self.owner = owner
        self.lost: str | None = None
        self.callback_error: BaseException | None = None
        self.stop_s = 0.0
        self.export_s = 0.0
        self._autograd = torch._C._autograd
        self._thread = threading.current_thread()
        self._on_trace = on_trace
        self._exported: str | None = None  # why it cannot be done again
        self._running = False
        self._begin = 0.0
        # whether other profilers are about, whose count of steps is then left alone
        self._counted = torch_session.steps_are_counted()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._profiler: Any = torch.profiler.profile(
                activities=[getattr(torch.profiler.ProfilerActivity, name.upper()) for name in activities],
                schedule=None if schedule is None else torch.profiler.schedule(**schedule),
                on_trace_ready=self._ready,
                record_shapes=record_shapes,
                profile_memory=profile_memory,
                with_stack=with_stack,
                with_flops=with_flops,
            )
        self._forget_steps()
        self.warnings = [str(warning.message) for warning in caught]
        if schedule is not None:
            # true of every schedule that repeats, and what is wanted: each cycle is exported for itself
            warnings.filterwarnings(
                "ignore", message="Warning: Profiler clears events at the end of each cycle"
            )
        for key, value in (metadata or {}).items():
            self._profiler.preset_metadata_json(key, _quoted(value))

    # -- life ------------------------------------------------------------------------------------------------

    @property
    def phase(self) -> str:
        """What the current step is: wait, warmup or active."""
        return _PHASES.get(self._action, "active")

    def check_thread(self, what: str) -> None:
        """Refuse another thread than the one that recording started on, as long as that thread lives.

        Raises
        ------
        WrongThreadError
            On another thread; the recording goes on.
        """
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            raise WrongThreadError(
                f"{what} has to be called on the thread that started it ({self.owner}): torch.profiler would "
                "lose everything otherwise. It is still running"
            )

    def start(self) -> None:
        """Begin recording, on the calling thread.

        Raises
        ------
        CaptureActiveError
            When another torch profiler is running: torch would silently drop what that has recorded.
        CaptureError
            When torch cannot start.
        """
        with acting(), quiet_kineto():
            other = torch_session.holder()
            if other is not None:
                raise CaptureActiveError(
                    f"{other.owner} is recording with torch.profiler, and torch has only one session at a "
                    "time: stop it first"
                )
            torch_session.sweep()
            if torch_session.others_record():
                raise CaptureActiveError(
                    "another torch.profiler session is recording in this process, not started through this "
                    "package, and torch has only one at a time: stop it first"
                )
            self._thread = threading.current_thread()
            torch_session.claim(self)
            try:
                self._profiler.start()
            except BaseException as error:
                torch_session.release(self)
                if isinstance(error, RuntimeError):
                    raise CaptureError(f"torch.profiler could not be started: {error}") from error
                raise
            self._running = True

    def mark(self, name: str) -> tuple[int, int]:
        """Put a mark into the trace; return the Unix time (ns) before and after it."""
        before = time.time_ns()
        mark(name)
        return before, time.time_ns()

    def step(self) -> None:
        """Go to the next step of the schedule.

        Raises
        ------
        RecordingLostError
            When the session was taken, or another one is running when this one's turn comes.
        WrongThreadError
            On another thread.
        """
        self._check_own_thread("step")
        with acting():
            self._look()
            if self.lost is None and not self._in_torch and self._next_begins():
                torch_session.sweep()
                if torch_session.others_record():
                    self._lose(
                        "another torch.profiler session was running when this one was to begin recording"
                    )
            self._raise_lost()
            self._begin = time.perf_counter()
            with quiet_kineto():
                self._profiler.step()

    def stop(self) -> None:
        """End recording; a second call does nothing.

        Raises
        ------
        RecordingLostError
            When the session was taken: torch is left alone then, and there is nothing to export.
        WrongThreadError
            On another thread; the recording goes on.
        """
        self.check_thread("stop")
        if not self._running:
            return
        with acting():
            self._look()
            self._running = False
            try:
                if self.lost is None:
                    self._begin = time.perf_counter()
                    with quiet_kineto():
                        self._profiler.stop()
            finally:
                self._forget_steps()
                torch_session.release(self)
            torch_session.sweep()
            self._raise_lost()

    def discard(self) -> None:
        """End recording and throw away what was recorded; never calls ``on_trace``."""
        self._on_trace = None
        with suppress(RecordingLostError):
            self.stop()

    def export(self, path: Path) -> str | None:
        """Write the cycle that is complete as plain JSON, once; return what is wrong with the file, or None.

        Never as gzip: torch compresses line by line in Python, which takes ten times as long.
        """
        self._check_own_thread("export")
        if path.suffix == ".gz":
            raise ValueError(f"{path}: torch.profiler's traces are exported as plain JSON")
        if self.lost is not None:
            return self.lost
        if self._exported is not None:
            return self._exported
        self._exported = "this cycle was exported before"
        begin = time.perf_counter()
        try:
            with quiet_kineto(), plain_path(path) as plain:
                self._profiler.export_chrome_trace(plain)
        except Exception as error:
            return f"torch could not export the trace: {error}"
        except BaseException as error:
            self._exported = f"the export was interrupted by {type(error).__name__}"
            raise
        finally:
            self.export_s = time.perf_counter() - begin
        return export_damage(path)

    def _check_own_thread(self, what: str) -> None:
        if threading.current_thread() is not self._thread:
            self.check_thread(what)
            raise WrongThreadError(
                f"{what}: the thread that started {self.owner} has ended; only stop is left"
            )

    def _forget_steps(self) -> None:
        if not self._counted:
            torch_session.forget_steps()

    def _ready(self, _: Any) -> None:
        self._exported = None
        self.stop_s = time.perf_counter() - self._begin
        if self._on_trace is None:
            return
        try:
            self._on_trace(self)
        except BaseException as error:  # raised here it would crash the process in a later step
            self.callback_error = error

    # -- what others do --------------------------------------------------------------------------------------

    @property
    def _in_torch(self) -> bool:
        """Whether torch holds something of this recording."""
        return self._running and self._action != "NONE"

    @property
    def _records(self) -> bool:
        return self._action in ("RECORD", "RECORD_AND_SAVE")

    @property
    def _action(self) -> str:
        return str(self._profiler.current_action.name)

    def _next_begins(self) -> bool:
        return str(self._profiler.schedule(self._profiler.step_num + 1).name) != "NONE"

    def _raise_lost(self) -> None:
        if self.lost is not None:
            raise RecordingLostError(f"what torch recorded for {self.owner} is lost: {self.lost}")

    def _lose(self, why: str) -> None:
        self.lost = why
        torch_session.give_up(self._profiler)

    def _look(self) -> None:
        """Find out whether the session is still this recording's."""
        if self.lost is None and threading.current_thread() is not self._thread:
            self._lose("the thread that it was recorded on has ended")
            if self._in_torch:
                torch_session.replace_session()
        elif self.lost is None and self._records and not self._autograd._profiler_enabled():
            self._lose("something else in this process ended torch's session")
        elif self._taken and self.lost is not None and not torch_session.others_record():
            self.lost = self.lost.replace(_STARTED, _STARTED_AND_STOPPED)

    _taken = False

    def others_called(self, function: str) -> None:
        """Find out what a call of another profiler, on the calling thread, has done to this recording."""
        if self.lost is not None:
            return
        here = threading.current_thread() is self._thread
        if function == "_disable_profiler":
            # the range of the current step may be part of what has just ended
            torch_session.give_up_range(self._profiler)
            if self._records and here:
                self._lose("another torch.profiler session was stopped inside, and took what was recorded")
        elif self._in_torch:
            self._taken = True
            self._lose(_STARTED)
            torch_session.session_is_gone(self._thread)

    def in_child(self) -> None:
        """Be a recording of another process from now on."""
        self._lose("it is recorded by the process that this one was forked from")
        self._running = False

    def at_exit(self) -> None:
        """End recording because the process ends."""
        if self.lost is None:
            warnings.warn(
                f"the process ends while {self.owner} is recording: what torch recorded is lost",
                RuntimeWarning,
                stacklevel=2,
            )
        with suppress(CaptureError):
            if threading.current_thread() is self._thread:
                self.discard()
            else:
                if self.lost is None and self._in_torch:
                    torch_session.replace_session()
                torch_session.release(self)


_STARTED = "another torch.profiler session was started inside, and torch has only one at a time"
_STARTED_AND_STOPPED = (
    "another torch.profiler session was started and stopped inside, and torch has only one at a time"
)


def _quoted(value: str) -> str:
    import json

    return json.dumps(value)
