"""Finishing what a killed process left behind.

Everything is decided by the files that are there. Jobs that another process works on are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.json_values import text, whole
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.session.manifest import MANIFEST, CycleRecord, Manifest, RankRecord
from torchtrt_viz.loading.rank_files import read_archive_meta
from torchtrt_viz.runtime.torch_export import adopt_unfinished, export_damage, unfinished_export
from torchtrt_viz.serving.artifacts.pipeline import ArtifactPipeline, OnStage, status_of
from torchtrt_viz.serving.artifacts.session_folder import (
    ManifestFile,
    cycle_record,
    new_manifest,
    set_cycle,
    settle,
)
from torchtrt_viz.serving.artifacts.staging import Job, find_jobs
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.contract.status import ArtifactStatus

__all__ = ["recover"]


def recover(
    path: str | PathLike[str], *, settings: Settings | None = None, on_stage: OnStage | None = None
) -> list[ArtifactStatus]:
    """Finish the staged jobs below a profile folder or a session folder, and update the manifests.

    Parameters
    ----------
    path
        A profile folder, or the folder of one session.
    settings
        Limits, and other places where staging folders may be (``spare_staging``).

    Returns
    -------
    list of ArtifactStatus
        One for each staged job that was found and that no other process works on: ``published`` (finished
        now), ``cleanup_failed``, ``failed`` (``stage`` and ``error`` say why, the files are kept), or
        ``interrupted`` (the process ended before its export was complete: what there is of it is kept).
    """
    settings = settings or Settings()
    root = Path(path).resolve()
    pipeline = ArtifactPipeline(settings, on_stage=on_stage)
    done = []
    sessions: dict[Path, None] = {}
    for folder in find_jobs([root, *settings.spare_staging]):
        status = _finish(folder, root, pipeline, sessions)
        if status is not None:
            done.append(status)
    for pattern, above in ((MANIFEST, 1), ("rank-*/cycle-*.tar.gz", 2)):
        for path in (*sorted(root.glob(pattern)), *sorted(root.glob(f"*/{pattern}"))):
            sessions.setdefault(path.parents[above - 1])
    for session in sessions:
        _update(session, [s for s in done if s.session_id == session.name])
    return done


def _finish(
    folder: Path, root: Path, pipeline: ArtifactPipeline, sessions: dict[Path, None]
) -> ArtifactStatus | None:
    """Finish one job; None when it is not of this folder, or another process has it."""
    try:
        job = Job.open(folder)
    except TraceFormatError as error:
        return ArtifactStatus(
            session_id=folder.parent.parent.name,
            rank=-1,
            cycle=-1,
            state="failed",
            stage="recover",
            error=str(error),
            staging=str(folder),
        )
    if folder.is_relative_to(root):
        # The folder may have been moved or mounted elsewhere since.
        job.session_folder = folder.parent.parent
    elif not job.session_folder.is_relative_to(root):
        return None
    if not job.lock():
        return None
    try:
        sessions.setdefault(job.session_folder)
        return _resume(job, pipeline)
    finally:
        job.release()


def _resume(job: Job, pipeline: ArtifactPipeline) -> ArtifactStatus:
    status = status_of(job)
    noted = job.noted()
    for name in ("stop_s", "export_s", "raw_bytes", "warnings"):
        if noted.get(name) is not None:
            setattr(status, name, noted[name])
    try:
        adopt_unfinished(job.raw)
    except OSError as error:
        status.warnings.append(f"the whole trace {unfinished_export(job.raw)} could not be renamed: {error}")
    if export_damage(job.raw) is None or job.archive.exists():
        return pipeline.process(job, status)
    status.state, status.stage = "interrupted", "export"
    kept = next((p for p in (job.raw, unfinished_export(job.raw)) if p.exists() and p.stat().st_size), None)
    if kept is not None:
        status.error = (
            f"the process ended, or its disk was full, before the export was complete; {kept} holds what was "
            "written and can be loaded"
        )
        job.note(status.to_dict())
        return status
    status.error = "the process ended while it was recording: nothing of this cycle was exported"
    try:
        job.delete()
        status.staging = None
    except OSError as error:
        status.cleanup_error = str(error)
    return status


def _update(session: Path, statuses: list[ArtifactStatus]) -> None:
    """Add the finished jobs, and archives it does not list yet, to the manifest."""
    archives = _archives(session)

    def change(manifest: Manifest) -> None:
        for status in statuses:
            if status.rank >= 0:
                record = _record(manifest, status)
                name = f"rank-{status.rank:05d}/cycle-{status.cycle:05d}.tar.gz"
                set_cycle(record, cycle_record(status, name))
        for name, meta in archives.items():
            status = ArtifactStatus(
                session.name, meta.rank, meta.cycle, meta.role, meta.instance, meta.host, state="published"
            )
            record = _record(manifest, status)
            known = next((c for c in record.cycles if c.cycle == meta.cycle), None)
            if known is None or known.archive is None:
                set_cycle(record, CycleRecord(meta.cycle, "published", name, meta.size))
            if record.start_unix_ns is None:
                record.start_unix_ns, record.stop_unix_ns = meta.start_unix_ns, meta.stop_unix_ns
        for record in manifest.ranks:
            _close_record(record)
        settle(manifest)

    ManifestFile(session).change(change, _creator(session, archives, statuses))


def _close_record(record: RankRecord) -> None:
    """Mark a rank whose process is gone as collected or missing."""
    if record.state in ("expected", "recording"):
        if record.cycles and all(c.state in ("published", "cleanup_failed") for c in record.cycles):
            record.state = "collected"
        else:
            record.state = "missing"
            record.error = record.error or "its process ended before the session was stopped"
    for cycle in record.cycles:
        if cycle.state in ("queued", "parsing", "packing", "verifying"):
            cycle.state = "interrupted"


def _record(manifest: Manifest, status: ArtifactStatus) -> RankRecord:
    record = next((r for r in manifest.ranks if r.rank == status.rank), None)
    if record is None:
        record = RankRecord(
            rank=status.rank, role=status.role, instance=status.instance, host=status.host, state="recording"
        )
        manifest.ranks.append(record)
        manifest.ranks.sort(key=lambda r: r.rank)
    return record


class _Archive:
    """What a published archive says about itself."""

    def __init__(self, path: Path, meta: dict[str, object]) -> None:
        self.size = path.stat().st_size
        self.rank = int(str(meta["rank"]))
        self.cycle = int(str(meta["cycle"]))
        self.role = text(meta.get("role"))
        self.instance = text(meta.get("instance"))
        self.host = text(meta.get("host"))
        self.mode = text(meta.get("mode")) or "steps"
        self.config = meta.get("config")
        self.start_unix_ns = whole(meta.get("start_unix_ns"), 0, 2**63)
        self.stop_unix_ns = whole(meta.get("stop_unix_ns"), 0, 2**63)


def _archives(session: Path) -> dict[str, _Archive]:
    """The readable archives below a session's folder."""
    found = {}
    for path in sorted(session.glob("rank-*/cycle-*.tar.gz")):
        try:
            meta = read_archive_meta(Source(path))
        except TraceFormatError:
            continue
        if meta is not None:
            found[str(path.relative_to(session))] = _Archive(path, meta)
    return found


def _creator(
    session: Path, archives: dict[str, _Archive], statuses: list[ArtifactStatus]
) -> Callable[[], Manifest] | None:
    """Return what makes a manifest for a session that has lost its own (or never had one)."""
    if not archives and not statuses:
        return None
    first = next(iter(archives.values()), None)

    def create() -> Manifest:
        config = ProfileConfig(session.parent)
        manifest = new_manifest(session.name, first.mode if first else "steps", config, [])
        if first is not None and isinstance(first.config, dict):
            manifest.config = dict(first.config)
        return manifest

    return create
