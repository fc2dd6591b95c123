"""One capture of everything that runs in a block, on one time base."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from torchtrt_viz.capture import registry
from torchtrt_viz.capture.artifact_files import save, summary
from torchtrt_viz.capture.artifacts import Recorded
from torchtrt_viz.capture.assemble import assemble
from torchtrt_viz.capture.foreign_engines import columns_of_others, unreached
from torchtrt_viz.capture.options import CaptureOptions
from torchtrt_viz.capture.temporary_folder import TemporaryFolder
from torchtrt_viz.capture.torch_activity import TorchActivity, chosen_activities
from torchtrt_viz.capture.torchtrt_switch import TorchTensorRTSwitch
from torchtrt_viz.errors import CaptureActiveError, CaptureError, TorchTrtVizError

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.capture.artifacts import Recorded
    from torchtrt_viz.capture.shared_types import RecordedProgram
    from torchtrt_viz.capture.torch_activity import TorchActivity
    from torchtrt_viz.capture.torchtrt_switch import TorchTensorRTSwitch
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["CaptureRun", "last_run"]

_last: CaptureRun | None = None


def last_run() -> CaptureRun | None:
    """Return the latest capture of the process, finished or running; None before the first."""
    return _last


class CaptureRun:
    """One capture: before, during and after its block. Made by :func:`torchtrt_viz.profile`.

    Attributes
    ----------
    options : CaptureOptions
        What was asked for.
    state : str
        ``"new"``, ``"running"`` or ``"stopped"``.
    problems : list of str
        What could not be recorded, and why. Never silently empty: each entry is in ``summary()`` as well.
    error : BaseException or None
        The exception that ended the block, when one did; what ran before it is in the trace.
    """

    def __init__(self, options: CaptureOptions) -> None:
        self.options = options
        self.state = "new"
        self.problems: list[str] = []
        self.error: BaseException | None = None
        self.started_at = ""
        self.begin_unix_ns = 0
        self.end_unix_ns = 0
        self.start_seconds = 0.0
        self.stop_seconds = 0.0
        self._recorded: list[Recorded] = []
        self._included: dict[RecordedProgram, int] = {}
        self._torch: TorchActivity | None = None
        self._torch_file: Path | None = None
        self._folder: TemporaryFolder | None = None
        self._restore: dict[str, Any] | None = None
        self._recording: Any = None
        self._columns: Any = None
        self._attached: dict[Any, list[int]] = {}
        self._layer_sets: list[dict[str, bytes]] = []
        self._switch: TorchTensorRTSwitch | None = None

    def __repr__(self) -> str:
        if self.state != "stopped":
            return f"<Capture: {self.state}, level {self.options.level}>"
        runs = sum(recorded.runs for recorded in self._recorded)
        parts = [f"{runs} program runs"]
        if self._torch_file is not None:
            parts.append("torch activity")
        if self.error is not None:
            parts.append(f"ended by {type(self.error).__name__}")
        return f"<Capture of {self.wall_seconds:.3f} s: {', '.join(parts)}>"

    # -- life ----------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to record. All or nothing: what fails leaves nothing running.

        Raises
        ------
        CaptureActiveError
            When another capture, or a torch profiler of the user's own, is running.
        CaptureError
            When this capture was used already.

        Examples
        --------
        >>> running = tv.profile(activities="none").start()
        >>> running.stop().state
        'stopped'
        """
        global _last
        with registry.lock:
            if self.state != "new":
                raise CaptureError(f"this capture is {self.state}: call profile() for another one")
            other = registry.running()
            if other is not None:
                raise CaptureActiveError(
                    f"a capture is running already (started at {other.started_at}): leave its block first, "
                    "or stop it with torchtrt_viz.last().stop()"
                )
            self.started_at = _caller()
            if self.options.level != "off":
                self._begin()
                registry.set_running(self)
            self.state = "running"
            _last = self
        self.begin_unix_ns = time.time_ns()
        return self

    def stop(self) -> Self:
        """End the recording and keep what was recorded; stopping twice is fine.

        No device is waited for, with one exception: where torch records ``cuda``, the device is synchronised
        once, at the end.

        Raises
        ------
        CaptureError
            When torch activity is recorded and this is not the thread that started it; the capture goes on.

        Examples
        --------
        >>> capture.stop().state
        'stopped'
        """
        with registry.lock:
            if self.state == "stopped":
                return self
            if self.state == "new":
                raise CaptureError("this capture was not started")
            if self._torch is not None:
                self._torch.check_thread()
            self.end_unix_ns = time.time_ns()
            begin = time.perf_counter()
            if self.options.level != "off":
                registry.set_running(None)
                self._end()
            self.state = "stopped"
            self.stop_seconds = time.perf_counter() - begin
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.error = error
        try:
            self.stop()
        except TorchTrtVizError as failure:
            # the block's own exception is what the user has to see
            if error is None:
                raise
            self.problems.append(str(failure))

    # -- what was recorded ---------------------------------------------------------------------------

    @cached_property
    def recorded(self) -> TraceData:
        """Everything recorded, as one trace on one time base (read from the artifacts on first use).

        Raises
        ------
        CaptureError
            While the capture is running.
        """
        if self.state != "stopped":
            raise CaptureError(f"the capture is {self.state}: its trace is there when the block is left")
        return assemble(self)

    @property
    def wall_seconds(self) -> float:
        """Time from begin to end of the block, in seconds."""
        end = self.end_unix_ns or time.time_ns()
        return (end - self.begin_unix_ns) / 1e9 if self.begin_unix_ns else 0.0

    def summary(self) -> pd.DataFrame:
        """Return what was captured, what it cost, and what could not be reached.

        Columns: ``item``; ``value``; ``unit``; ``note`` (how it was measured, or what to do). Costs are
        estimates from measured costs of one event in this process, see :mod:`torchtrt_viz.capture.overhead`.
        """
        return summary(self)

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the artifacts into a folder, which ``torchtrt_viz.load`` reads as this capture.

        ``<program>.etdp`` with ``<program>.etdp.json`` for each program, its ETRecord without the weights
        where there is one, ``torch.pt.trace.json``, ``engines.json`` (engines of others), and
        ``capture.json`` (options, versions, clocks, problems).

        Parameters
        ----------
        folder
            Made if it is not there.
        force
            Overwrite files of an earlier capture in it.

        Raises
        ------
        CaptureError
            When the capture is running, or a file exists and ``force`` is not set.

        Examples
        --------
        >>> saved = capture.save(folder / "run")
        >>> len(tv.load(saved).spans) == len(capture.trace.spans)
        True
        """
        return save(self, Path(fspath(folder)), force=force)

    def _artifacts(self) -> TemporaryFolder:
        """The capture's temporary folder; it goes when the capture and all that reads from it are gone."""
        if self._folder is None:
            self._folder = TemporaryFolder()
        return self._folder

    # -- programs ------------------------------------------------------------------------------------

    def include(self, program: RecordedProgram, first_block: int) -> None:
        """Record a program; what it recorded before ``first_block`` is not of this capture."""
        self._reach_engines()
        if program not in self._included:
            self._included[program] = first_block
            program._record(True)
            if program.level is not None and program.level != self.options.level:
                self.problems.append(
                    f"{program.path.name} was loaded with level={program.level!r}, which wins over this "
                    f"capture's {self.options.level!r}: load it without a level to have captures decide"
                )

    # -- steps ---------------------------------------------------------------------------------------

    def _begin(self) -> None:
        begin = time.perf_counter()
        activities = chosen_activities(self.options)
        with contextlib.ExitStack() as undo:
            undo.callback(self._abandon)
            self._reach_engines()
            self._reach_torch_tensorrt()
            if activities:
                self._torch = TorchActivity(self.options, activities, Path(self._artifacts().name))
                self._torch.start()
                undo.callback(self._torch.abandon)
            elif self.options.activities == "auto":
                self.problems.append(
                    "no torch activity: torch was not loaded when the capture began (import torch before it, "
                    "or ask for activities='cpu')"
                )
            for program in registry.programs():
                if not program.closed:
                    self.include(program, len(program._session.blocks()))
            self._attached = {attachment: attachment.position() for attachment in _attachments()}
            undo.pop_all()
        self.start_seconds = time.perf_counter() - begin

    def _abandon(self) -> None:
        """Undo what a start that failed had begun."""
        for program in self._included:
            program._record(False)
        self._included.clear()
        if self._recording is not None:
            self._recording.stop()
            self._recording = None
        self._restore_profile()
        if self._switch is not None:
            self._switch.stop()
            self._switch = None

    def _reach_torch_tensorrt(self) -> None:
        if TorchTensorRTSwitch.operators() is not None or "torch_tensorrt" in sys.modules:
            self._switch = TorchTensorRTSwitch(Path(self._artifacts().name) / "torch_tensorrt")
            self._switch.start(self.problems)

    def _reach_engines(self) -> None:
        """Switch on every engine of the process, now or when the first of them comes to be."""
        native = _loaded_capture_module()
        if native is None or self._restore is not None:
            return
        self._restore = dict(native.get_profile())
        self._recording = native.Recording()
        native.set_profile(
            execution=True,
            level=self.options.level,
            format=self.options.format,
            path_prefix=self.options.path_prefix,
        )
        # engines change over now, so that the first call in the block does not pay for it
        native.apply_profile()

    def _end(self) -> None:
        """Stop everything; what fails is a problem to report, and stops nothing else from being kept."""
        for program in self._included:
            program._record(False)
        if self._torch is not None:
            try:
                self._torch_file = self._torch.stop()
            except CaptureError as error:
                self.problems.append(str(error))
        with self._reporting("sidecar files could not be written"):
            self._flush_sidecars()
        with self._reporting("the process-wide profiling settings could not be restored"):
            self._restore_profile()
        columns = None if self._recording is None else self._recording.stop()
        self._recording = None
        owned: set[tuple[str, int]] = set()
        names: set[str] = set()
        for program, first in self._included.items():
            with self._reporting(f"what {program.path.name} recorded is lost"):
                recorded = Recorded.of(program, first)
                owned.update((engine["engine_id"], engine["instance"]) for engine in recorded.engines)
                if not program._own:
                    program.clear()
                if recorded.blocks:
                    recorded.name = _unique(recorded.name, names)
                    self._recorded.append(recorded)
        self._included.clear()
        for attachment in [*self._attached, *(a for a in _attachments() if a not in self._attached)]:
            with self._reporting("layer times of an attached engine are lost"):
                self._layer_sets += attachment.files(self._attached.get(attachment), names)
                self.problems += attachment.problems
        self._attached.clear()
        if self._switch is not None:
            written = self._switch.stop()
            if written:
                self._layer_sets.append({path.name: path.read_bytes() for path in written})
        native = _loaded_capture_module()
        if columns is not None and native is not None:
            self._columns = columns_of_others(columns, owned, native.clock_anchor())
            self.problems += unreached(self._columns)

    def _flush_sidecars(self) -> None:
        native = _loaded_capture_module()
        if native is not None and self.options.format != "etdump":
            native.flush_sidecars()

    def _restore_profile(self) -> None:
        native = _loaded_capture_module()
        if native is not None and self._restore is not None:
            before, self._restore = self._restore, None
            native.set_profile(
                execution=before["execution"],
                level=before["level"],
                format=before["format"],
                path_prefix=before["path_prefix"] or None,
            )

    @contextlib.contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        try:
            yield
        except TorchTrtVizError as error:
            self.problems.append(f"{what}: {error}")


def _loaded_capture_module() -> Any | None:
    """The native module, if the process uses it already: without it no program or engine can run."""
    return sys.modules.get("torchtrt_viz._native.capture")


def _attachments() -> list[Any]:
    """The attached layer profilers, if anybody has attached any."""
    module = sys.modules.get("torchtrt_viz.capture.attach")
    return [] if module is None else list(module.attachments())


def _unique(name: str, taken: set[str]) -> str:
    number = 2
    candidate = name
    while candidate in taken:
        candidate = f"{name}-{number}"
        number += 1
    taken.add(candidate)
    return candidate


def _caller() -> str:
    """File and line outside of this package that asked for the capture."""
    frame = sys._getframe()
    package = str(Path(__file__).resolve().parents[1])
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
