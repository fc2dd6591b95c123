"""One session on one rank: from its start to the hand-over of its last export."""

from __future__ import annotations

import time
from pathlib import Path

from torchtrt_viz.errors import CaptureActiveError, CaptureError, RecordingLostError
from torchtrt_viz.formats.session.manifest import STAGING
from torchtrt_viz.runtime.torch_profiler import TorchRecording
from torchtrt_viz.serving.artifacts.pipeline import ArtifactPipeline, status_of, write_rank_meta
from torchtrt_viz.serving.artifacts.space import (
    available_memory_share,
    estimated_trace_bytes,
    free_bytes,
    resident_bytes,
    roomiest,
)
from torchtrt_viz.serving.artifacts.staging import Job
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.errors import ProfileActiveError
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus
from torchtrt_viz.serving.rank.annotations import asynchronous_danger
from torchtrt_viz.serving.rank.first_stage import FirstStage, staged
from torchtrt_viz.serving.rank.torch_recording import session_recording

__all__ = ["Recording"]

_MEMORY_LOOK_S = 1.0
_CLOCK_S = 1.0


class Recording:
    """One session on one rank. Every method is called on the engine's thread.

    Parameters
    ----------
    folder
        The session's folder.
    status
        Updated by the recording.
    """

    def __init__(
        self,
        config: ProfileConfig,
        identity: RankIdentity,
        settings: Settings,
        pipeline: ArtifactPipeline,
        *,
        folder: Path,
        window: bool,
        status: CollectionStatus,
    ) -> None:
        self.config = config
        self.identity = identity
        self.settings = settings
        self.status = status
        self.folder = folder
        self._pipeline = pipeline
        self._window = window
        self._discarding = False
        self._next: Job | None = None
        self._finished: list[tuple[Job, ArtifactStatus]] = []
        self._resident = 0
        self._began = self._looked = 0.0
        assert status.session_id is not None
        self._session_id = status.session_id
        self._native = session_recording(
            config, identity, self._session_id, window=window, on_trace=self._trace_ready
        )
        self._cycles_wanted = 1 if window else config.repeat
        self.status.warnings += [*self._native.warnings, *_caveats(config)]
        danger = asynchronous_danger()
        if danger is not None:
            self.status.warnings.append(danger)

    # -- life ------------------------------------------------------------------------------------------

    def start(self, first: FirstStage) -> None:
        """Begin to record, the first cycle into a staging folder that is there already.

        Raises
        ------
        CaptureError
            When torch cannot start, or the caller has given up.
        ProfileActiveError
            When another torch profiler runs in the process.
        """
        self._next = first.take()
        self._resident = resident_bytes()
        try:
            self._native.start()
        except BaseException as error:
            self._drop(self._next)
            self._next = None
            if isinstance(error, CaptureActiveError):
                raise ProfileActiveError(str(error)) from error
            raise
        self._began = time.monotonic()
        self.status.start_unix_ns = time.time_ns()
        self.status.phase = None if self._window else self._native.phase

    def step(self) -> bool:
        """Count one completed step; False when the schedule has recorded all its cycles.

        Raises
        ------
        WrongThreadError
            On another thread than the one that started; nothing is counted, and the recording goes on.
        """
        if not self._window:
            try:
                self._native.step()
            except RecordingLostError:
                return True  # `overdue` says so
        self.status.steps += 1
        if self._window:
            return True
        self.status.phase = self._native.phase
        self._raise_interrupt()
        return not (self._cycles_wanted and self.status.cycles_ended >= self._cycles_wanted)

    def overdue(self) -> str | None:
        """Return the limit that stops the recording now; None when there is none."""
        if self._native.lost is not None:
            return "lost"
        now = time.monotonic()
        limit = self.settings.max_window_s
        if self._window and limit is not None and now - self._began > limit:
            return "window_limit"
        if now - self._looked > _MEMORY_LOOK_S:
            self._looked = now
            if available_memory_share() < self.settings.min_available_memory:
                return "memory_limit"
        return None

    def stop(self, *, discard: bool = False) -> None:
        """Stop the native profiler and hand over what it recorded; parsing and packing are not waited for.

        Parameters
        ----------
        discard
            Throw away what was recorded (a start that was rolled back).
        """
        self._discarding = discard
        lost = False
        try:
            self._native.stop()
        except RecordingLostError as error:
            lost = True
            self.status.error = str(error)
        finally:
            self.status.stop_unix_ns = time.time_ns()
            self.status.phase = None
            self._compare_clocks()
            unused, self._next = self._next, None
            if unused is not None:
                self._drop(unused)
        if self.status.cycles_ended == 0 and not discard and not lost:
            self.status.warnings.append(
                "nothing was recorded: the session was stopped before its first recorded step"
            )
        self._raise_interrupt()

    def _compare_clocks(self) -> None:
        """Note that this machine's clock was set while it recorded: times of its ranks then do not agree."""
        start, stop = self.status.start_unix_ns, self.status.stop_unix_ns
        if start is None or stop is None:
            return
        moved = (stop - start) / 1e9 - (time.monotonic() - self._began)
        if abs(moved) > _CLOCK_S:
            way = "forward" if moved > 0 else "back"
            self.status.warnings.append(
                f"this machine's clock was set {way} by {abs(moved):.1f} s while it recorded: times since "
                "1970 before and after do not agree"
            )

    def hand_over(self) -> None:
        """Queue what was exported.

        This comes after everything else, because the background thread begins at once and may hold the
        interpreter for some milliseconds.
        """
        finished, self._finished = self._finished, []
        for job, status in finished:
            self._pipeline.submit(job, status)

    def _raise_interrupt(self) -> None:
        """Deal with an exception of the export now that the native profiler is in a safe state.

        An interrupt (Ctrl-C) is raised; a failure is reported in the status.
        """
        error, self._native.callback_error = self._native.callback_error, None
        if isinstance(error, Exception):
            self.status.error = str(error) or type(error).__name__
        elif error is not None:
            raise error

    # -- cycles ----------------------------------------------------------------------------------------

    def _stage(self, cycle: int, root: Path) -> Job:
        return staged(
            self.config, self.identity, self.folder, root, self._session_id, cycle, window=self._window
        )

    def _drop(self, job: Job) -> None:
        """Delete a staging folder in which nothing was recorded."""
        try:
            job.delete()
        except OSError as error:
            self.status.warnings.append(
                f"the unused staging folder {job.folder} could not be deleted: {error}"
            )
        finally:
            job.release()

    def _trace_ready(self, native: TorchRecording) -> None:
        """Export a complete cycle and hand it over (called by the native profiler)."""
        cycle = self.status.cycles_ended
        self.status.cycles_ended += 1
        if self._discarding:
            return
        job, self._next = self._next, None
        job = self._roomy(job, cycle)
        status = status_of(job)
        failure: str | None
        interrupt = None
        try:
            failure = native.export(job.raw)
        except Exception as error:
            failure = f"torch could not export the trace: {error}"
        except BaseException as error:
            interrupt = error
            failure = f"the export was interrupted by {type(error).__name__}"
        status.stop_s, status.export_s = native.stop_s, native.export_s
        job.collection = self._collection(native, cycle)
        try:
            status.raw_bytes = job.raw.stat().st_size
            write_rank_meta(job)
        except OSError:
            pass  # the pipeline writes it again, and reports a failure
        if failure is None:
            self.status.cycles += 1
            self._finished.append((job, status))
        else:
            status.state, status.stage, status.error = "failed", "export", failure
            self.status.error = f"cycle {cycle}: {failure}"
            self._pipeline.add_failed(job, status)
        if not self._window and self._cycles_wanted != cycle + 1:
            self._prepare(cycle + 1)
        self._resident = resident_bytes()
        if interrupt is not None:
            raise interrupt

    def _prepare(self, cycle: int) -> None:
        """Make the next cycle's staging folder ahead of time."""
        try:
            self._next = self._stage(cycle, self.folder / STAGING)
        except OSError as error:
            self.status.warnings.append(f"cycle {cycle}: {error}")

    def _roomy(self, job: Job | None, cycle: int) -> Job:
        """Return the job, moved to a disk with space for the export where its own has too little."""
        needed = estimated_trace_bytes(self._resident)
        own = self.folder / STAGING
        root = roomiest(own, self.settings.spare_staging, needed)
        if job is not None and root == own:
            return job
        if free_bytes(root) < needed:
            self.status.warnings.append(
                f"cycle {cycle}: the export may take {needed >> 20} MiB, and no staging disk has as much free"
            )
        errors = []
        for candidate in dict.fromkeys((root, own, *self.settings.spare_staging)):
            try:
                moved = self._stage(cycle, candidate)
            except OSError as error:
                errors.append(str(error))
                continue
            if job is not None:
                self._drop(job)
            if candidate != own:
                self.status.warnings.append(
                    f"cycle {cycle}: staged in {candidate}, since {self.config.output_dir} is short of space"
                )
            return moved
        if job is not None:
            return job
        raise CaptureError(f"cycle {cycle} cannot be staged anywhere: {'; '.join(errors)}")

    def _collection(self, native: TorchRecording, cycle: int) -> dict[str, object]:
        """Return what ``rank.json`` says about how the cycle was recorded."""
        return {
            "start_unix_ns": self.status.start_unix_ns,
            "stop_unix_ns": time.time_ns(),
            "steps": self.status.steps,
            "cut_at_start": list(self.status.cut_at_start) if cycle == 0 else [],
            "cut_at_stop": list(self.status.cut_at_stop),
            "ended_by": self.status.ended_by,
            "stop_s": native.stop_s,
            "export_s": native.export_s,
            "warnings": list(self.status.warnings),
        }


def _caveats(config: ProfileConfig) -> list[str]:
    """Return what the options do not deliver although one might expect it."""
    out = []
    if config.with_flops and not config.record_shapes:
        out.append("with_flops: operations can only be estimated from shapes, and record_shapes is off")
    return out
