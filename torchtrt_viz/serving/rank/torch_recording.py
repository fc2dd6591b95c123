"""A guard around torch.profiler.

Each rule here answers a failure of torch 2.13 that was reproduced: a second start silently takes over
the running session; a second stop followed by an export crashes the process; a stop on another thread
returns but loses everything; an exception in the trace callback makes the following steps crash; an
export to a full disk or a missing folder returns normally, and cannot be repeated; the first start of a
process imports a compiler for seconds; asking for CUDA without CUDA only warns.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import MissingDependencyError, OptionError
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.errors import ProfileActiveError, WrongThreadError

__all__ = ["NativeRecording", "export_damage", "profiler_is_active", "resolve_activities", "warm_up"]

_TAIL = 4096
_warmed = False


def _torch() -> Any:
    try:
        import torch.profiler
    except ImportError as error:
        raise MissingDependencyError("torch", "serving", "profile a torch engine") from error
    return torch


def profiler_is_active() -> bool:
    """Whether a torch profiler is running in this process, whoever started it."""
    torch = _torch()
    return bool(torch._C._autograd._profiler_enabled() or torch.autograd.profiler._is_profiler_enabled)


def resolve_activities(config: ProfileConfig, device: str) -> tuple[str, ...]:
    """Return the activities that a session on ``device`` records.

    Raises
    ------
    OptionError
        When this build of torch, or this machine, does not support one of them.
    """
    wanted = config.activities
    if wanted is None:
        kind = device.split(":")[0]
        wanted = ("cpu",) if kind == "cpu" else ("cpu", kind)
    supported = {activity.name.lower() for activity in _torch().profiler.supported_activities()}
    for name in wanted:
        if name not in supported:
            raise OptionError(
                "activities", name, f"here torch supports {', '.join(sorted(supported))} (engine on {device})"
            )
    return tuple(wanted)


def warm_up() -> None:
    """Do the slow work (1 to 6 s) of a process's first profiler start now, before serving begins."""
    global _warmed
    if _warmed or profiler_is_active():
        return
    torch = _torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        profiler.start()
        profiler.stop()
    _warmed = True


def export_damage(path: Path) -> str | None:
    """Return what is wrong with an exported file (the export itself reports nothing); None if it is fine."""
    leftover = path.with_name(path.name + ".tmp")
    if not path.exists():
        if leftover.exists():
            return (
                f"only a part of the trace was written ({leftover.stat().st_size} bytes): is the disk full?"
            )
        return "the trace was not written: is the disk full, or the folder gone?"
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - _TAIL))
        tail = stream.read()
    if b'"traceName"' not in tail or not tail.rstrip().endswith(b"}"):
        return f"the trace ends early, after {size} bytes: is the disk full?"
    return None


class NativeRecording:
    """One torch profiler from start to stop, used on one thread only.

    Parameters
    ----------
    on_trace
        Called on the same thread with this recording when a cycle is complete; exports it with
        :meth:`export`. An exception in it is kept in ``callback_error`` instead of being raised into the
        engine.
    schedule
        Fields of :func:`torch.profiler.schedule`; None records from start to stop.
    metadata
        Text added to the trace's own metadata.

    Attributes
    ----------
    stop_s, export_s
        How long torch took to collect the last cycle, and to write it. Both held the interpreter.
    warnings
        What torch said about the options.
    """

    def __init__(
        self,
        config: ProfileConfig,
        activities: tuple[str, ...],
        on_trace: Callable[[NativeRecording], None],
        schedule: dict[str, int] | None,
        metadata: dict[str, str],
    ) -> None:
        torch = _torch()
        self._thread = threading.get_ident()
        self._on_trace = on_trace
        self._exported = False
        self._running = False
        self._begin = 0.0
        self.callback_error: BaseException | None = None
        self.stop_s = 0.0
        self.export_s = 0.0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._profiler = torch.profiler.profile(
                activities=[getattr(torch.profiler.ProfilerActivity, name.upper()) for name in activities],
                schedule=None if schedule is None else torch.profiler.schedule(**schedule),
                on_trace_ready=self._ready,
                record_shapes=config.record_shapes,
                profile_memory=config.profile_memory,
                with_stack=config.with_stack,
                with_flops=config.with_flops,
            )
        self.warnings = [str(w.message) for w in caught]
        # Every repeating schedule causes this warning; each cycle is exported by itself, as intended.
        warnings.filterwarnings("ignore", message="Warning: Profiler clears events at the end of each cycle")
        for key, value in metadata.items():
            self._profiler.preset_metadata_json(key, _quoted(value))

    def _check_thread(self, what: str) -> None:
        if threading.get_ident() != self._thread:
            raise WrongThreadError(
                f"{what} was called on another thread than start: torch.profiler would lose the recording. "
                "Call it on the engine's thread, or through the profiler's mailbox"
            )

    def _ready(self, _: Any) -> None:
        self._exported = False
        self.stop_s = time.perf_counter() - self._begin
        try:
            self._on_trace(self)
        except BaseException as error:  # an exception raised here would crash the process in a later step
            self.callback_error = error

    @property
    def phase(self) -> str:
        """What the current step is: wait, warmup or active."""
        action = self._profiler.current_action.name
        return {"NONE": "wait", "WARMUP": "warmup"}.get(action, "active")

    def start(self) -> None:
        """Begin recording.

        Raises
        ------
        ProfileActiveError
            When another torch profiler is running: torch would silently drop what it has recorded.
        """
        self._check_thread("start")
        if profiler_is_active():
            raise ProfileActiveError(
                "another torch profiler is running in this process, not started through this package: "
                "stop it first"
            )
        self._profiler.start()
        self._running = True

    def step(self) -> None:
        """Go to the next step of the schedule."""
        self._check_thread("step")
        self._begin = time.perf_counter()
        self._profiler.step()

    def stop(self) -> None:
        """End recording; a second call does nothing."""
        self._check_thread("stop")
        if not self._running:
            return
        self._running = False
        self._begin = time.perf_counter()
        self._profiler.stop()

    def export(self, path: Path) -> str | None:
        """Write the cycle that is complete as plain JSON, once; return what is wrong with the file, or None.

        Never as gzip: torch compresses line by line in Python, which takes ten times as long.
        """
        self._check_thread("export")
        if self._exported:
            return "this cycle was exported before"
        self._exported = True
        begin = time.perf_counter()
        try:
            self._profiler.export_chrome_trace(str(path))
        finally:
            self.export_s = time.perf_counter() - begin
        return export_damage(path)


def _quoted(value: str) -> str:
    import json

    return json.dumps(value)
