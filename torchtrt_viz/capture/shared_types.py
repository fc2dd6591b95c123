"""What the parts of a capture know of one another: programs, the running capture, and the finished one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from pathlib import Path

    from torchtrt_viz._native.capture import Session
    from torchtrt_viz.capture.artifacts import Recorded
    from torchtrt_viz.capture.options import CaptureOptions
    from torchtrt_viz.capture.temporary_folder import TemporaryFolder
    from torchtrt_viz.capture.torch_activity import TorchActivity
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FinishedCapture", "RecordedProgram", "RunningCapture"]


class RecordedProgram(Protocol):
    """A loaded program, as captures use it: see `torchtrt_viz.capture.program.LoadedProgram`."""

    path: Path
    level: Any
    etrecord: Path | None
    _own: bool
    _session: Session

    @property
    def closed(self) -> bool:
        """Whether the program was closed."""
        ...

    def clear(self) -> None:
        """Forget what was recorded so far."""
        ...

    def _record(self, on: bool) -> None: ...


class RunningCapture(Protocol):
    """The capture that is running, as programs use it: see `torchtrt_viz.capture.capture_run.CaptureRun`."""

    started_at: str

    def include(self, program: RecordedProgram, first_block: int) -> None:
        """Record a program from a block on."""
        ...

    def stop(self) -> Self:
        """End the recording."""
        ...


class FinishedCapture(Protocol):
    """A stopped capture, as its summary and its artifacts are made from it."""

    options: CaptureOptions
    state: str
    problems: list[str]
    error: BaseException | None
    begin_unix_ns: int
    end_unix_ns: int
    start_seconds: float
    stop_seconds: float
    _recorded: list[Recorded]
    _torch: TorchActivity | None
    _torch_file: Path | None
    _columns: Any
    _layer_sets: list[dict[str, bytes]]

    @property
    def recorded(self) -> TraceData:
        """Everything recorded, as one trace."""
        ...

    @property
    def wall_seconds(self) -> float:
        """Time from begin to end of the block, in seconds."""
        ...

    def _artifacts(self) -> TemporaryFolder: ...
