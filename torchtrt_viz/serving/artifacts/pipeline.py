"""From an export to a verified archive, on one background thread per rank.

The thread receives folders, never traces or profilers. Parsing and reading back run in another process;
compression and checksums release the interpreter lock. Nothing is deleted before its archive has been
read back and published; a failed job keeps its files, and its status says so.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable

from torchtrt_viz.errors import CaptureError
from torchtrt_viz.formats.io.whole_file import fsync_folder, write_whole
from torchtrt_viz.formats.session.manifest import RANK_FORMAT, RANK_META
from torchtrt_viz.runtime.torch_export import export_damage
from torchtrt_viz.serving.artifacts.child import ask
from torchtrt_viz.serving.artifacts.pack import checksum, pack, publish, published_by, verify
from torchtrt_viz.serving.artifacts.staging import Job
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.contract.status import ArtifactStatus

__all__ = ["STAGES", "ArtifactPipeline", "status_of", "write_rank_meta"]

STAGES = ("queued", "parse", "pack", "verify", "publish", "published", "clean", "done")
"""Values that ``on_stage`` is called with, in order: one before each step, the last when all is done."""

OnStage = Callable[[str, Job], None]


def status_of(job: Job) -> ArtifactStatus:
    """Return a fresh status of a job."""
    return ArtifactStatus(
        session_id=job.session_id,
        rank=job.identity.rank,
        cycle=job.cycle,
        role=job.identity.role,
        instance=job.identity.instance,
        host=job.identity.host,
        staging=str(job.folder),
    )


def write_rank_meta(job: Job) -> None:
    """Write ``rank.json``: whose cycle it is, and how its collection went.

    Raises
    ------
    OSError
        When it cannot be written.
    """
    import orjson

    identity = job.identity.to_dict()
    document = {
        "format": RANK_FORMAT,
        "session_id": job.session_id,
        **identity,
        "cycle": job.cycle,
        "mode": job.mode,
        "config": job.config,
        **(job.collection or {}),
    }
    write_whole(job.folder / RANK_META, orjson.dumps(document, option=orjson.OPT_INDENT_2), durable=False)


class ArtifactPipeline:
    """The one consumer of a rank's exports.

    Parameters
    ----------
    on_change
        Called on the background thread whenever a job's state changes, with (job, status). What it raises is
        named in the status's warnings.
    on_stage
        Called on the background thread before each step (:data:`STAGES`), for tests and for progress
        displays. What it raises before the archive is published fails the job; after that it is named in the
        status's warnings.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_change: Callable[[Job, ArtifactStatus], None] | None = None,
        on_stage: OnStage | None = None,
    ) -> None:
        self.settings = settings
        self._on_change = on_change or (lambda job, status: None)
        self._on_stage = on_stage or (lambda stage, job: None)
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._statuses: dict[str, ArtifactStatus] = {}
        self._jobs: dict[str, Job] = {}
        self._only_clean: set[str] = set()
        self._revision = 0
        self._revisions: dict[str, int] = {}  # of each job's last change, the latest one last
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    # -- for the engine's thread -----------------------------------------------------------------------

    def submit(self, job: Job, status: ArtifactStatus) -> None:
        """Queue a job whose export is complete; returns at once."""
        self.start()
        with self._changed:
            self._statuses[job.job_id] = status
            self._jobs[job.job_id] = job
            self._revise(job)
        self._queue.put(job)

    def start(self) -> None:
        """Start the background thread now, so that a later hand-over does not wait for it."""
        if os.getpid() != self._pid:  # a forked child has neither its parent's thread nor its jobs
            self._queue, self._statuses, self._jobs = queue.SimpleQueue(), {}, {}
            self._changed, self._thread, self._pid = threading.Condition(), None, os.getpid()
            self._revisions = {}
        with self._changed:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._consume, name="torchtrt_viz-artifacts", daemon=True
                )
                self._thread.start()

    def add_failed(self, job: Job, status: ArtifactStatus) -> None:
        """Register a job that failed before it could be queued; its files stay."""
        with self._changed:
            self._statuses[job.job_id] = status
            self._jobs[job.job_id] = job
            self._changed.notify_all()
        job.note(status.to_dict())
        job.release()
        self._tell(job, status)

    # -- for whoever asks ------------------------------------------------------------------------------

    def statuses(self, session_id: str | None = None) -> list[ArtifactStatus]:
        """Status of every job of a session (of all sessions by default), in order of cycles."""
        with self._changed:
            found = [s for s in self._statuses.values() if session_id in (None, s.session_id)]
            return [ArtifactStatus(**vars(s)) for s in found]

    def changes(self, session_id: str | None, since: int) -> tuple[int, list[ArtifactStatus]]:
        """Return the current revision, and the statuses of a session that changed after another one.

        Takes time for what has changed, not for what there is.
        """
        with self._changed:
            found = []
            for key, revision in reversed(self._revisions.items()):
                if revision <= since:
                    break
                if self._statuses[key].session_id == session_id:
                    found.append(ArtifactStatus(**vars(self._statuses[key])))
            return self._revision, found[::-1]

    def _revise(self, job: Job) -> None:
        """Count a change of a job (the lock is held)."""
        self._revision += 1
        self._revisions.pop(job.job_id, None)
        self._revisions[job.job_id] = self._revision

    def _tell(self, job: Job, status: ArtifactStatus) -> None:
        """Report a change; a listener that fails changes nothing for the job."""
        with self._changed:
            self._revise(job)
        try:
            self._on_change(job, status)
        except Exception as error:
            _note(status, "a listener", error)

    def _after(self, stage: str, job: Job, status: ArtifactStatus) -> None:
        """Report a step after which the archive is in place, whatever happens."""
        try:
            self._on_stage(stage, job)
        except Exception as error:
            _note(status, f"on_stage({stage!r})", error)

    def wait(self, timeout: float | None = None, session_id: str | None = None) -> bool:
        """Wait until every job is done, or failed; False when time ran out."""

        def settled() -> bool:
            return all(s.done for s in self._statuses.values() if session_id in (None, s.session_id))

        with self._changed:
            return self._changed.wait_for(settled, timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Finish what is queued and end the thread; False when time ran out (the jobs then stay staged)."""
        thread = self._thread
        if thread is None or os.getpid() != self._pid:
            return True
        self._queue.put(None)
        thread.join(timeout)
        return not thread.is_alive()

    def retry(self, session_id: str | None = None) -> list[ArtifactStatus]:
        """Queue failed jobs again, and repeat failed clean-ups; return the jobs concerned."""
        with self._changed:
            again = [
                (self._jobs[key], status)
                for key, status in self._statuses.items()
                if status.state in ("failed", "cleanup_failed") and session_id in (None, status.session_id)
            ]
        taken = []
        for job, status in again:
            if status.state == "failed" and export_damage(job.raw) is not None:
                continue  # an incomplete recording cannot be completed later
            if not job.lock():
                continue
            if status.state == "cleanup_failed":
                self._only_clean.add(job.job_id)
            status.state, status.stage, status.error = "queued", None, None
            self.submit(job, status)
            taken.append(status)
        return taken

    # -- the background thread -------------------------------------------------------------------------

    def _consume(self) -> None:
        while True:
            job = self._queue.get()
            if job is None:
                return
            with self._changed:
                status = self._statuses[job.job_id]
            try:
                self.process(job, status)
            finally:
                job.release()

    def process(self, job: Job, status: ArtifactStatus) -> ArtifactStatus:
        """Take one job from its export (or from where an earlier attempt was interrupted) to its archive."""
        if job.job_id not in self._only_clean:
            try:
                self._make(job, status)
            except Exception as error:
                self._failed(job, status, error)
                return status
        self._clean(job, status)
        return status

    def _make(self, job: Job, status: ArtifactStatus) -> None:
        settings = self.settings
        status.stage = "pack"
        self._on_stage("queued", job)
        if published_by(job) is not None:  # interrupted after publishing
            self._describe(job, status)
            return
        job.unpublished.unlink(missing_ok=True)
        damage = export_damage(job.raw)
        if damage is not None:
            status.stage = "export"
            raise CaptureError(damage)
        if job.collection is not None:
            write_rank_meta(job)
        self._enter(job, status, "parsing", "parse")
        begin = time.perf_counter()
        _fsync(job)
        answer = ask("tables", str(job.folder), settings, "parsing")
        status.warnings += answer.get("warnings", [])
        status.parse_s = time.perf_counter() - begin
        self._enter(job, status, "packing", "pack")
        begin = time.perf_counter()
        packed = pack(job, settings.compression_level)
        status.pack_s = time.perf_counter() - begin
        self._enter(job, status, "verifying", "verify")
        begin = time.perf_counter()
        verify(job, packed, settings)
        status.verify_s = time.perf_counter() - begin
        self._enter(job, status, "verifying", "publish")
        publish(job)
        self._describe(job, status, packed.bytes, packed.sha256)

    def _describe(
        self, job: Job, status: ArtifactStatus, size: int | None = None, digest: str | None = None
    ) -> None:
        """Note that the archive is in place."""
        if size is None:
            size, digest = checksum(job.archive)
        status.archive, status.bytes, status.sha256 = str(job.archive), size, digest
        status.stage = None
        self._after("published", job, status)

    def _enter(self, job: Job, status: ArtifactStatus, state: str, stage: str) -> None:
        with self._changed:
            status.state, status.stage = state, stage
        job.note(status.to_dict())
        self._tell(job, status)
        self._on_stage(stage, job)

    def _failed(self, job: Job, status: ArtifactStatus, error: Exception) -> None:
        """Keep the staged files and report what happened."""
        with self._changed:
            status.state = "failed"
            status.error = str(error) or type(error).__name__
        try:
            job.unpublished.unlink(missing_ok=True)  # all that it held is still staged
        except OSError as left:
            status.warnings.append(str(left))
        job.note(status.to_dict())
        self._tell(job, status)
        with self._changed:
            self._changed.notify_all()

    def _clean(self, job: Job, status: ArtifactStatus) -> None:
        """Delete the staged files of a published job; a failure is told apart and can be retried alone."""
        self._after("clean", job, status)
        self._only_clean.discard(job.job_id)
        try:
            job.unpublished.unlink(missing_ok=True)
            job.delete()
        except OSError as error:
            with self._changed:
                status.state, status.cleanup_error = "cleanup_failed", str(error)
            job.note(status.to_dict())
        else:
            with self._changed:
                status.state, status.cleanup_error, status.staging = "published", None, None
        self._after("done", job, status)
        self._tell(job, status)
        with self._changed:
            self._changed.notify_all()


def _note(status: ArtifactStatus, who: str, error: Exception) -> None:
    text = f"{who} raised {type(error).__name__}: {error}"
    if text not in status.warnings:
        status.warnings.append(text)


def _fsync(job: Job) -> None:
    """Make the export survive a loss of power before anything builds on it."""
    with job.raw.open("rb") as stream:
        os.fsync(stream.fileno())
    fsync_folder(job.raw.parent)
