"""torch's activity in a capture: what to record, room for it, and its place on the capture's clock."""

from __future__ import annotations

import shutil
from pathlib import Path

from torchtrt_viz.capture.options import CaptureOptions
from torchtrt_viz.errors import CaptureActiveError, CaptureError
from torchtrt_viz.formats.capture.document import MARK
from torchtrt_viz.runtime.modules import loaded_torch
from torchtrt_viz.runtime.torch_export import unfinished_export
from torchtrt_viz.runtime.torch_profiler import TorchRecording, check_activities

__all__ = ["TorchActivity", "chosen_activities"]

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
    return check_activities(wanted, "capture")


class TorchActivity:
    """What torch.profiler records for one capture.

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
        self._activities = activities
        self._path = folder / "torch.pt.trace.json"
        self._recording = TorchRecording(
            "a capture (torchtrt_viz.profile)",
            activities,
            record_shapes=options.record_shapes,
            with_stack=options.with_stack,
            profile_memory=options.profile_memory,
            with_flops=options.with_flops,
        )
        self.synchronized = False
        #: Unix time (ns) before and after each mark.
        self.marks: list[tuple[int, int]] = []

    def start(self) -> None:
        """Start recording on the calling thread.

        Raises
        ------
        CaptureActiveError
            When another torch profiler is recording: ours would take its session away.
        CaptureError
            When the disk is all but full, or torch cannot start.
        """
        free = shutil.disk_usage(self._path.parent).free
        if free < _LEAST_FREE_BYTES:
            raise CaptureError(
                f"only {free >> 20} MiB are free in {self._path.parent}: the trace could not be written; "
                "free some space, or set TMPDIR to another disk"
            )
        try:
            self._recording.start()
        except CaptureActiveError as error:
            raise CaptureActiveError(
                f"{error}, or capture without torch's activity (activities='none')"
            ) from error
        self.marks.append(self._recording.mark(MARK))

    def check_thread(self) -> None:
        """Refuse to stop on another thread than the one that started.

        Raises
        ------
        WrongThreadError
            On another thread; the recording goes on.
        """
        self._recording.check_thread("the capture's stop()")

    def stop(self) -> Path:
        """Stop, and write the trace.

        The one device synchronisation of a capture is here: with ``cuda`` recorded and CUDA in use, the
        device is waited for, so that the work of the block is in the trace.

        Raises
        ------
        CaptureError
            When the recording is lost, or the trace was not written whole.
        """
        torch = loaded_torch()
        if torch is not None and "cuda" in self._activities and torch.cuda.is_initialized():
            torch.cuda.synchronize()
            self.synchronized = True
        if self._recording.lost is None:
            self.marks.append(self._recording.mark(MARK))
        self._recording.stop()
        damage = self._recording.export(self._path)
        if damage is not None:
            unfinished_export(self._path).unlink(missing_ok=True)
            raise CaptureError(f"torch's activity is lost: {damage} ({self._path})")
        return self._path

    def abandon(self) -> None:
        """Stop without writing anything, when the capture could not be started."""
        self._recording.discard()
