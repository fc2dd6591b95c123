"""`RankProfiler`: one rank's profiling, driven by the engine's thread."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchtrt_viz.analysis.core.step_names import step_mark, step_name
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.runtime.torch_profiler import mark, warm_up
from torchtrt_viz.serving.artifacts.pipeline import ArtifactPipeline, OnStage
from torchtrt_viz.serving.artifacts.session_folder import check_session_id, new_session_id
from torchtrt_viz.serving.artifacts.staging import Job
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.errors import ProfileActiveError
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.mailbox import Mailbox
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus, ProfileStatus
from torchtrt_viz.serving.rank.annotations import PhaseRange, open_range
from torchtrt_viz.serving.rank.first_stage import FirstStage, first_stage
from torchtrt_viz.serving.rank.recording import Recording
from torchtrt_viz.serving.rank.torch_recording import resolve_activities

__all__ = ["EngineStep", "RankProfiler"]

Listener = Callable[[str, Any], None]


class EngineStep:
    """One step of an engine, as :meth:`RankProfiler.engine_step` hands it out.

    Attributes
    ----------
    worked
        Whether the step did work. An engine that only polled sets it to False: idle polling is not counted.
    kind
        What the step does, where the engine tells: prefill, decode, mixed. It may be set inside the step.
    """

    __slots__ = ("_named", "_profiler", "_range", "kind", "worked")

    def __init__(self, profiler: RankProfiler, kind: str | None) -> None:
        self.worked = True
        self.kind = self._named = kind
        self._profiler = profiler
        self._range: PhaseRange | None = None

    def __enter__(self) -> EngineStep:
        profiler = self._profiler
        profiler.poll()
        if profiler._recording is not None and profiler._status.phase != "wait":
            self._range = PhaseRange(profiler._session, step_name(profiler._status.steps, self.kind))
            self._range.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._range is not None:
            if error is None and (not self.worked or self.kind != self._named):
                mark(step_mark(self.kind if self.worked else None))
            self._range.__exit__()
        if error is not None:
            self._profiler.abort(error)
        elif self.worked:
            self._profiler.advance()


class RankProfiler:
    """Profiles one rank: starts and stops, counts steps, hands exports to the background.

    The thread that runs the engine creates it, wraps each step in :meth:`engine_step`, and calls
    :meth:`poll` while idle. Everything else may be called from any thread. Without an active session a
    step costs one comparison, and nothing is created, written or synchronised.

    Parameters
    ----------
    identity
        Which rank this is; by default taken from torch.distributed and the process.
    settings
        Limits and folders.
    on_stage
        Called on the background thread before each processing step, see :class:`ArtifactPipeline`.
    """

    def __init__(
        self,
        identity: RankIdentity | None = None,
        settings: Settings | None = None,
        *,
        on_stage: OnStage | None = None,
    ) -> None:
        self.identity = identity or RankIdentity.here()
        self.settings = settings or Settings()
        self.pipeline = ArtifactPipeline(self.settings, on_change=self._artifact_changed, on_stage=on_stage)
        self.mailbox = Mailbox()
        self.requests: dict[str, None] = {}
        self._recording: Recording | None = None
        self._status = CollectionStatus()
        self._listeners: list[Listener] = []
        self._noted: list[str] = []
        _profilers.add(self)

    # -- setting up ------------------------------------------------------------------------------------

    def attach(self) -> None:
        """Make the calling thread the engine's, and do the slow work (1 to 6 s) of the first start now."""
        self.mailbox.own()
        warm_up(extra=None)

    def listen(self, listener: Listener) -> None:
        """Report changes to ``listener("collection", status)`` and ``listener("artifact", (job, status))``.

        The first is called on the engine's thread and must be quick, the second on the background thread.
        """
        self._listeners.append(listener)

    def _tell(self, what: str, value: Any) -> None:
        for listener in self._listeners:
            try:
                listener(what, value)
            except Exception as error:  # nobody who listens may end a session, or an engine's step
                self.note(f"a listener raised {type(error).__name__}: {error}")

    def _artifact_changed(self, job: Job, status: ArtifactStatus) -> None:
        self._tell("artifact", (job, status))

    def note(self, warning: str) -> None:
        """Add a warning to the status, once; between sessions also to the next one's."""
        if warning not in self._status.warnings:
            self._status.warnings.append(warning)
            if self._status.state == "idle":
                self._noted.append(warning)

    # -- sessions --------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str | None:
        """Id of the session that is active, or was last."""
        return self._status.session_id

    @property
    def recording(self) -> bool:
        """Whether a session is active."""
        return self._recording is not None

    @property
    def phase(self) -> str | None:
        """Wait, warmup or active, within a session by steps; else None."""
        return self._status.phase

    def start(
        self,
        config: ProfileConfig,
        *,
        window: bool = False,
        session_id: str | None = None,
        identity: RankIdentity | None = None,
    ) -> CollectionStatus:
        """Start a session.

        Parameters
        ----------
        config
            What to collect.
        window
            Record from now to :meth:`stop`; by default the configuration's schedule of steps decides.
        session_id
            Given by whoever coordinates several ranks; made up otherwise.
        identity
            Which rank this is in the session, where a coordinator assigns ranks.

        Raises
        ------
        OptionError
            For options that cannot be met; nothing has been started then.
        ProfileActiveError
            While another session is active, or another torch profiler runs in the process.
        ControlTimeoutError
            When called on another thread, and the engine's thread does not take it up.
        """
        session_id = new_session_id() if session_id is None else check_session_id(session_id)
        self.refuse_second()
        identity = identity or self.identity
        config.check(window=window)
        resolve_activities(config, identity.device)
        # What the disk takes its time for is waited for here, not between two steps of the engine.
        folder = config.output_dir / session_id
        try:
            first = first_stage(config, identity, self.settings, folder, session_id, window=window)
        except BaseException:
            _remove_empty(folder)
            raise
        self.pipeline.start()
        try:
            return self.mailbox.run(
                lambda: self._start(config, window, session_id, identity, first),
                self.settings.control_timeout_s,
            )
        except BaseException:
            if first.abandon():
                _remove_empty(folder)
            raise

    def refuse_second(self) -> None:
        """Raise `ProfileActiveError` unless a session could be started."""
        if self._status.state != "idle":
            raise ProfileActiveError(
                f"profile session {self._status.session_id} is {self._status.state}: "
                "stop it before starting another one"
            )

    def _start(
        self,
        config: ProfileConfig,
        window: bool,
        session_id: str,
        identity: RankIdentity,
        first: FirstStage,
    ) -> CollectionStatus:
        self.refuse_second()
        self.mailbox.own()
        status = CollectionStatus(
            state="starting", session_id=session_id, mode="window" if window else "steps"
        )
        status.warnings, self._noted = self._noted, []
        earlier, self._status = self._status, status
        try:
            warm_up(extra=None)
            recording = Recording(
                config,
                identity,
                self.settings,
                self.pipeline,
                folder=config.output_dir / session_id,
                window=window,
                status=status,
            )
            recording.start(first)
        except BaseException:
            self._status = earlier
            raise
        status.cut_at_start = list(self.requests)
        self._recording = recording
        status.state = "recording"
        self._tell("collection", status)
        return replace(status)

    def stop(self, session_id: str | None = None, *, reason: str = "stop") -> CollectionStatus:
        """Stop the session and queue what it recorded; archives are made in the background.

        Stopping again, or a session that is over, does nothing and returns how it ended. A session id that is
        not the active one's stops nothing.

        Raises
        ------
        ControlTimeoutError
            When called on another thread, and the engine's thread does not take it up.
        """
        return self.mailbox.run(
            lambda: self._stop(session_id, reason, discard=False), self.settings.control_timeout_s
        )

    def cancel(self, session_id: str) -> CollectionStatus:
        """Stop a session and throw its recording away: it did not start everywhere."""
        return self.mailbox.run(
            lambda: self._stop(session_id, "cancelled", discard=True), self.settings.control_timeout_s
        )

    def _stop(self, session_id: str | None, reason: str, *, discard: bool) -> CollectionStatus:
        recording, status = self._recording, self._status
        if recording is None or session_id not in (None, status.session_id):
            return replace(status)
        self._recording = None
        status.state = "stopping"
        status.ended_by = reason
        status.cut_at_stop = list(self.requests)
        try:
            recording.stop(discard=discard)
        except Exception as error:
            status.error = f"the profiler could not be stopped cleanly: {error}"
        finally:
            status.state = "idle"
            told = replace(status)
            recording.hand_over()
            self._tell("collection", status)
        return told

    # -- the engine's loop -------------------------------------------------------------------------------

    def engine_step(self, kind: str | None = None) -> EngineStep:
        """Wrap one step of the engine: counts it once when it is completed and did work.

        While a session records, the step is a range in the trace, with its number and kind; idle time between
        steps is in none. An exception in the step ends the session, keeps what it recorded, and propagates
        unchanged.

        Parameters
        ----------
        kind
            What the step does: prefill, decode, mixed. It may also be set in the step.
        """
        return EngineStep(self, kind)

    def _session(self) -> object | None:
        return self._recording

    def advance(self) -> None:
        """Count one completed step of work, on the engine's thread."""
        recording = self._recording
        if recording is None:
            return
        if not recording.step():
            self._stop(None, "schedule", discard=False)
        else:
            recording.hand_over()
            self._stop_overdue(recording)

    def poll(self) -> None:
        """Run the calls of other threads; the engine's thread calls this while idle."""
        if self.mailbox.waiting:
            self.mailbox.deliver()
        if self._recording is not None:
            self._stop_overdue(self._recording)

    def _stop_overdue(self, recording: Recording) -> None:
        reason = recording.overdue()
        if reason is not None:
            if reason != "lost":  # that is an error, which the recording itself tells
                self._status.warnings.append(f"stopped by itself: {reason}")
            self._stop(None, reason, discard=False)

    def abort(self, error: BaseException) -> None:
        """End the session because the engine failed; never raises, so that the engine's own error is seen."""
        if self._recording is None:
            return
        try:
            self._status.warnings.append(f"the engine's step raised {type(error).__name__}")
            self._stop(None, "error", discard=False)
        except BaseException as second:
            self._status.error = f"collection could not be finalised: {second}"

    # -- what the engine may tell ------------------------------------------------------------------------

    def annotate_step(self, name: str, kind: str | None = None) -> AbstractContextManager[Any]:
        """Return an engine's own range around a step, inside one of ours that tells its number and kind.

        For engines that open a range for each step themselves and count it with :meth:`advance`. What is of
        kind idle gets their range alone.
        """
        if self._recording is None:
            return nullcontext()
        ranges = ExitStack()
        if kind != "idle":  # what does nothing is no step
            ranges.enter_context(PhaseRange(self._session, step_name(self._status.steps, kind)))
        ranges.enter_context(PhaseRange(self._session, name))
        return ranges

    def annotate(self, phase: str, **ids: Any) -> AbstractContextManager[Any]:
        """Return a range to enter around a phase of the engine's work.

        Records ``phase[request=... transfer=... tokens=...]`` while a session is active and
        ``settings.annotations`` is on; otherwise it does nothing.
        """
        return open_range(self._session, self.settings.annotations, phase, **ids)

    def request_begins(self, request: str) -> None:
        """Note that a request is in flight: the status lists requests that a recording's boundary cuts."""
        self.requests[str(request)] = None

    def request_ends(self, request: str) -> None:
        """Note that a request is finished."""
        self.requests.pop(str(request), None)

    # -- afterwards --------------------------------------------------------------------------------------

    def status(self) -> ProfileStatus:
        """Return the state of collection, and of every artifact of the last session."""
        collection = replace(self._status)
        session_id = collection.session_id
        return ProfileStatus(collection, self.pipeline.statuses(session_id) if session_id else [])

    def changes(self, since: int) -> tuple[CollectionStatus, int, list[ArtifactStatus]]:
        """Return collection, the artifacts' revision, and those that changed after another revision."""
        collection = replace(self._status)
        return collection, *self.pipeline.changes(collection.session_id, since)

    def wait_for_artifacts(self, timeout: float | None = None) -> list[ArtifactStatus]:
        """Wait until everything that was queued is processed; return the status of every artifact.

        Parameters
        ----------
        timeout
            Seconds; when they are over, the status says what is still being processed.
        """
        self.pipeline.wait(timeout)
        return self.pipeline.statuses()

    def retry(self, session_id: str | None = None) -> list[ArtifactStatus]:
        """Process failed artifacts again, and clean up where only that failed; returns what was taken up."""
        return self.pipeline.retry(session_id)

    def close(self, timeout: float | None = None) -> bool:
        """Stop what is active, finish what is queued, and end the background thread.

        Returns
        -------
        bool
            False when time ran out; the rest stays staged, and `recover` finishes it.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._recording is not None:
            try:
                self.stop(reason="exit")
            except TorchTrtVizError as error:
                self._status.error = str(error)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return self.pipeline.close(left)


# every profiler of this process, for what a fork inherits
_profilers: weakref.WeakSet[RankProfiler] = weakref.WeakSet()


def _in_child() -> None:
    """A fork records nothing, and its end must not touch the files of the process that does."""
    for profiler in _profilers:
        profiler._recording = None
        profiler._status = CollectionStatus()
        profiler.mailbox = Mailbox()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _remove_empty(folder: Path) -> None:
    """Remove the folder of a session that did not start, if it is empty."""
    try:
        folder.rmdir()
    except OSError:
        return
