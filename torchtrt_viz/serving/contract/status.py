"""What `profile_status` says: collection and artifacts, each with its own state."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["ARTIFACT_STATES", "COLLECTION_STATES", "ArtifactStatus", "CollectionStatus", "ProfileStatus"]

COLLECTION_STATES = ("idle", "starting", "recording", "stopping")
ARTIFACT_STATES = (
    "queued",
    "parsing",
    "packing",
    "verifying",
    "published",  # the archive is in place and agrees with its inventory
    "cleanup_failed",  # so it is, but staged files could not be deleted
    "failed",  # stage and error say where; the staged files are kept
    "interrupted",  # the process ended before it was done; recover() finishes it
)
_FINAL = ("published", "cleanup_failed", "failed", "interrupted")


@dataclass
class ArtifactStatus:
    """One recording cycle of one rank on its way into an archive.

    Attributes
    ----------
    state
        One of :data:`ARTIFACT_STATES`.
    stage, error
        Where it failed (export, parse, pack, verify, publish), and how.
    archive
        The archive once it is published.
    bytes, sha256
        Its size and checksum.
    staging
        Folder that holds the staged files while there are any.
    cleanup_error
        Why staged files could not be deleted.
    raw_bytes
        Size of the exported trace.
    stop_s, export_s, parse_s, pack_s, verify_s
        How long each step took; the first two held up the engine, the others did not.
    """

    session_id: str
    rank: int
    cycle: int
    role: str | None = None
    instance: str | None = None
    host: str | None = None
    state: str = "queued"
    stage: str | None = None
    error: str | None = None
    archive: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    staging: str | None = None
    cleanup_error: str | None = None
    raw_bytes: int | None = None
    stop_s: float | None = None
    export_s: float | None = None
    parse_s: float | None = None
    pack_s: float | None = None
    verify_s: float | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.state in _FINAL

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ArtifactStatus:
        """Make a status out of JSON; fields of other versions are dropped."""
        known = cls.__dataclass_fields__
        return cls(**{k: v for k, v in values.items() if k in known})


@dataclass
class CollectionStatus:
    """Whether anything is being recorded, and how the last recording ended.

    Attributes
    ----------
    state
        One of :data:`COLLECTION_STATES`.
    session_id
        Of the session that is active, or was last.
    mode
        "steps" or "window".
    phase
        Within a session by steps: wait, warmup or active.
    steps
        Completed engine steps since the start.
    cycles
        Recording cycles that were exported.
    cycles_ended
        Recording cycles that came to their end, exported or not.
    start_unix_ns, stop_unix_ns
        This machine's clock when recording began and ended.
    ended_by
        stop, schedule (all cycles are recorded), error (of the engine), window_limit, memory_limit,
        lost (``error`` says how), cancelled, disconnected or exit.
    error
        What went wrong with collecting; the engine's own errors are not kept here but raised there.
    cut_at_start, cut_at_stop
        Requests that were in flight at the boundaries.
    warnings
        Where collection differed from what one might expect.
    """

    state: str = "idle"
    session_id: str | None = None
    mode: str | None = None
    phase: str | None = None
    steps: int = 0
    cycles: int = 0
    cycles_ended: int = 0
    start_unix_ns: int | None = None
    stop_unix_ns: int | None = None
    ended_by: str | None = None
    error: str | None = None
    cut_at_start: list[str] = field(default_factory=list)
    cut_at_stop: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)


@dataclass
class ProfileStatus:
    """Collection and artifacts: recording may be over long before its archives are ready."""

    collection: CollectionStatus
    artifacts: list[ArtifactStatus] = field(default_factory=list)
    ranks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def artifact_state(self) -> str:
        """One of "none", "processing", "ready", or "failed" when at least one artifact needs attention."""
        if not self.artifacts:
            return "none"
        if any(not a.done for a in self.artifacts):
            return "processing"
        return "ready" if all(a.state == "published" for a in self.artifacts) else "failed"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "collection": self.collection.to_dict(),
            "artifact_state": self.artifact_state,
            "artifacts": [a.to_dict() for a in self.artifacts],
            "ranks": self.ranks,
        }
