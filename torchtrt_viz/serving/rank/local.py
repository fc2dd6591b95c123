"""`LocalProfiler`: sessions of a single process, manifest included."""

from __future__ import annotations

import atexit
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.artifacts.manifest_writer import ManifestWriter
from torchtrt_viz.serving.artifacts.pipeline import OnStage
from torchtrt_viz.serving.artifacts.session_folder import (
    ManifestFile,
    check_session_id,
    new_manifest,
    new_session_id,
    rank_record,
)
from torchtrt_viz.serving.artifacts.session_manifest import SharedBook
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.contract.status import ArtifactStatus, ProfileStatus
from torchtrt_viz.serving.rank.profiler import RankProfiler

__all__ = ["LocalProfiler"]

_EXIT_S = 600.0
_FLUSH_S = 5.0
_KEPT_SESSIONS = 16


class LocalProfiler:
    """Profiles an engine that runs in this process.

    ::

        profiling = LocalProfiler()
        profiling.attach()                          # on the engine's thread, after the model is loaded
        while serving:
            with profiling.engine_step() as step:
                step.worked = engine.step()
        profiling.close()

    Elsewhere (an HTTP handler, a notebook)::

        profiling.start_profile(ProfileConfig("profiles", active=20))
        profiling.wait_for_profile_artifacts()

    Parameters
    ----------
    identity, settings, on_stage
        As of :class:`~torchtrt_viz.serving.RankProfiler`.
    """

    def __init__(
        self,
        identity: RankIdentity | None = None,
        settings: Settings | None = None,
        *,
        on_stage: OnStage | None = None,
    ) -> None:
        self.profiler = RankProfiler(identity, settings, on_stage=on_stage)
        self.profiler.listen(self._changed)
        self.attach = self.profiler.attach
        self.engine_step = self.profiler.engine_step
        self.poll = self.profiler.poll
        self.annotate = self.profiler.annotate
        self.request_begins = self.profiler.request_begins
        self.request_ends = self.profiler.request_ends
        self._books: dict[str, SharedBook] = {}
        self._manifests = ManifestWriter()
        atexit.register(self.close, _EXIT_S)

    @property
    def settings(self) -> Settings:
        """Limits and folders."""
        return self.profiler.settings

    def start_profile(
        self, config: ProfileConfig, *, window: bool = False, session_id: str | None = None
    ) -> ProfileStatus:
        """Start a session: by the configuration's schedule, or with ``window`` until it is stopped.

        Raises
        ------
        OptionError
            For options that cannot be met; nothing has been started then.
        ProfileActiveError
            While another session is active, or another torch profiler runs in the process.
        ControlTimeoutError
            When the engine's thread, which has to start it, does not take it up.
        """
        session_id = new_session_id() if session_id is None else check_session_id(session_id)
        self.profiler.refuse_second()
        identity = self.profiler.identity
        manifest = new_manifest(session_id, "window" if window else "steps", config, [rank_record(identity)])
        book = SharedBook(ManifestFile(config.output_dir / session_id), manifest, identity)
        if session_id in self._books:
            raise OptionError("session_id", session_id, "an id that was not used before")
        self._books[session_id] = book  # before the session starts, so that no change is missed
        try:
            self.profiler.start(config, window=window, session_id=session_id)
        except BaseException:
            del self._books[session_id]
            raise
        try:
            book.claim()
            self._manifests.want(book)  # what changed while it was claimed
        except OptionError:
            self.profiler.cancel(session_id)
            raise
        except OSError as error:
            book.unclaimed(f"{config.output_dir / session_id}: the manifest could not be written: {error}")
        while len(self._books) > _KEPT_SESSIONS:
            self._books.pop(next(iter(self._books)))
        return self.profile_status()

    def stop_profile(self) -> ProfileStatus:
        """Stop the session; what it recorded is processed in the background. Stopping again does nothing.

        Raises
        ------
        ControlTimeoutError
            When the engine's thread, which has to stop it, does not take it up.
        """
        self.profiler.stop()
        return self.profile_status()

    def profile_status(self) -> ProfileStatus:
        """Return the state of collection and, apart from it, of every artifact of the last session."""
        status = self.profiler.status()
        book = self._books.get(status.collection.session_id or "")
        if book is not None and book.error is not None:
            status.collection.warnings.append(book.error)
        return status

    def wait_for_profile_artifacts(self, timeout: float | None = None) -> list[ArtifactStatus]:
        """Wait for what is queued; return every artifact's archive, or what went wrong with it.

        Parameters
        ----------
        timeout
            Seconds; when they are over the statuses say what is still being processed.
        """
        found = self.profiler.wait_for_artifacts(timeout)
        self._manifests.flush(_FLUSH_S)
        return found

    def retry_profile_artifacts(self) -> ProfileStatus:
        """Process failed artifacts again (when the disk has space), and clean up where only that failed."""
        self.profiler.retry()
        return self.profile_status()

    def close(self, timeout: float | None = None) -> bool:
        """Stop what is active, finish what is queued; False when time ran out (see `recover`)."""
        atexit.unregister(self.close)
        done = self.profiler.close(timeout)
        self._manifests.flush(_FLUSH_S)
        return done

    def _changed(self, what: str, value: Any) -> None:
        """Update the manifest, on a thread of its own: at once where something ended, else in turns."""
        if what == "collection":
            book = self._books.get(value.session_id)
            if book is not None:
                book.collection(self.profiler.identity.rank, value)
                self._manifests.want(book)
            return
        job, status = value
        book = self._books.get(job.session_id)
        if book is not None:
            book.artifact(status)
            self._manifests.want(book, now=status.done)
