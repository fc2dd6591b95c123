"""torch.profiler behind a state machine: what it does silently wrong is refused or noticed here.

Measured with torch 2.13 (each of these would otherwise lose the recording or the process):

- stopping on another thread than the one that started records nothing and leaks the session;
- a second ``stop()`` followed by an export is a segmentation fault;
- a second profiler that starts takes over the session without an error;
- an export to a full disk or a missing folder returns normally, and the data are gone.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torchtrt_viz.capture.options import CaptureOptions
from torchtrt_viz.errors import CaptureActiveError, CaptureError, MissingDependencyError, OptionError
from torchtrt_viz.loading.capture_folder import MARK
from torchtrt_viz.runtime.modules import loaded_torch

__all__ = ["TorchActivity", "chosen_activities", "profiler_active"]

# a capture is not started onto a disk that is all but full: kineto would lose it at the end
_LEAST_FREE_BYTES = 64 << 20


def chosen_activities(options: CaptureOptions) -> tuple[str, ...]:
    """Resolve ``activities``: ``"auto"`` is cpu, and cuda where it is in use, if torch is loaded at all.

    Raises
    ------
    MissingDependencyError
        When activities are asked for by name and torch is not installed.
    OptionError
        When torch cannot record what is asked for.
    """
    wanted = options.activities
    if not wanted:
        return ()
    if wanted == "auto":
        loaded = loaded_torch()
        if loaded is None or not loaded.autograd.kineto_available():
            return ()
        # asking for a device would initialise CUDA: only a process that uses it already records it
        return ("cpu", "cuda") if loaded.cuda.is_initialized() else ("cpu",)
    try:
        from torch.profiler import supported_activities
    except ImportError as error:
        raise MissingDependencyError("torch", "capture", "record torch.profiler activity") from error
    supported = {activity.name.lower() for activity in supported_activities()}
    missing = [name for name in wanted if name not in supported]
    if missing:
        raise OptionError(
            "activities", ",".join(wanted), f"this torch records {', '.join(sorted(supported))} only"
        )
    return tuple(wanted)


def profiler_active() -> bool:
    """Tell whether a torch profiler records in this process, on any thread."""
    torch = loaded_torch()
    if torch is None:
        return False
    return bool(torch.autograd.profiler._is_profiler_enabled or torch._C._autograd._profiler_enabled())


class TorchActivity:
    """One recording of torch.profiler.

    Parameters
    ----------
    options
        The capture's options.
    activities
        What to record, as :func:`chosen_activities` gave it; not empty.
    folder
        Where the trace is written.
    """

    def __init__(self, options: CaptureOptions, activities: tuple[str, ...], folder: Path) -> None:
        self._options = options
        self._activities = activities
        self._path = folder / "torch.pt.trace.json"
        self._profiler: Any = None
        self._thread = 0
        self.start_seconds = 0.0
        self.stop_seconds = 0.0
        self.export_seconds = 0.0
        self.synchronized = False
        #: Unix time (ns) before and after each mark.
        self.marks: list[tuple[int, int]] = []

    def start(self) -> None:
        """Start recording on the calling thread.

        Raises
        ------
        CaptureActiveError
            When the user's own torch profiler is recording: ours would take its session away.
        CaptureError
            When the disk is all but full.
        """
        import torch
        from torch.profiler import ProfilerActivity, profile

        if profiler_active():
            raise CaptureActiveError(
                "a torch.profiler session of this program is recording, and torch has only one at a time: "
                "stop it first, or capture without torch's activity (activities='none')"
            )
        free = shutil.disk_usage(self._path.parent).free
        if free < _LEAST_FREE_BYTES:
            raise CaptureError(
                f"only {free >> 20} MiB are free in {self._path.parent}: the trace could not be written; "
                "free some space, or set TMPDIR to another disk"
            )
        begin = time.perf_counter()
        options = self._options
        with _quiet_kineto():
            self._profiler = profile(
                activities=[getattr(ProfilerActivity, name.upper()) for name in self._activities],
                record_shapes=options.record_shapes,
                with_stack=options.with_stack,
                profile_memory=options.profile_memory,
                with_flops=options.with_flops,
            )
            self._profiler.start()
        self._thread = threading.get_ident()
        self._mark(torch)
        self.start_seconds = time.perf_counter() - begin

    def check_thread(self) -> None:
        """Refuse to stop on another thread than the one that started.

        Raises
        ------
        CaptureError
            On another thread; the recording goes on.
        """
        if self._profiler is not None and threading.get_ident() != self._thread:
            raise CaptureError(
                "a capture that records torch activity has to be stopped on the thread that started it: "
                "torch.profiler would lose everything otherwise. It is still running"
            )

    def stop(self) -> Path:
        """Stop, and write the trace.

        The one device synchronisation of a capture is here: with ``cuda`` recorded and CUDA in use, the
        device is waited for, so that the work of the block is in the trace.

        Raises
        ------
        CaptureError
            When another profiler took the session, or the trace was not written whole.
        """
        import torch

        profiler, self._profiler = self._profiler, None
        if profiler is None:
            raise CaptureError("the torch recording was stopped already")
        if "cuda" in self._activities and torch.cuda.is_initialized():
            torch.cuda.synchronize()
            self.synchronized = True
        if not torch._C._autograd._profiler_enabled():
            # stopping and exporting now would be a segmentation fault, or an empty file
            raise CaptureError(
                "torch's activity is lost: another torch.profiler session was started and stopped inside the "
                "block, and torch has only one at a time"
            )
        self._mark(torch)
        begin = time.perf_counter()
        with _quiet_kineto():
            profiler.stop()
            self.stop_seconds = time.perf_counter() - begin
            begin = time.perf_counter()
            try:
                profiler.export_chrome_trace(str(self._path))
            except (RuntimeError, OSError) as error:
                raise CaptureError(
                    f"torch's activity is lost: torch could not export it ({error})"
                ) from error
        self.export_seconds = time.perf_counter() - begin
        _check_export(self._path)
        return self._path

    def abandon(self) -> None:
        """Stop without writing anything, when the capture could not be started."""
        import torch

        profiler, self._profiler = self._profiler, None
        if profiler is not None and torch._C._autograd._profiler_enabled():
            with _quiet_kineto():
                profiler.stop()

    def _mark(self, torch: Any) -> None:
        before = time.time_ns()
        with torch._C._profiler._RecordFunctionFast(MARK):
            pass
        self.marks.append((before, time.time_ns()))


def _check_export(path: Path) -> None:
    """Prove from the file that the export worked: torch returns normally when it did not."""
    left = path.with_name(path.name + ".tmp")
    if not path.is_file():
        what = "the disk is full" if left.exists() else "no file was written"
        left.unlink(missing_ok=True)
        raise CaptureError(f"torch's activity is lost: {what} ({path})")
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 4096))
        tail = stream.read().rstrip()
    if not tail.endswith(b"}") or b'"traceName"' not in tail:
        raise CaptureError(f"torch's activity is incomplete: {path} ends early; is the disk full?")


@contextmanager
def _quiet_kineto() -> Iterator[None]:
    """Keep kineto's progress lines off stderr; what goes wrong is checked from its files.

    The variable is read when the first profiler of the process is made. Who has set it keeps his setting.
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
