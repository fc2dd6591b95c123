"""The manifest of a running session, kept up to date by the process that coordinates it."""

from __future__ import annotations

import threading

from torchtrt_viz.formats.session.manifest import Manifest, RankRecord, archive_path
from torchtrt_viz.serving.artifacts.session_folder import (
    ManifestFile,
    cycle_record,
    note_collection,
    set_cycle,
    settle,
)
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus

__all__ = ["SessionBook"]


class SessionBook:
    """What is known of a session, in memory and as ``manifest.json``.

    Attributes
    ----------
    error
        Why the manifest could not be written the last time, None when it could.
    """

    def __init__(self, file: ManifestFile, manifest: Manifest) -> None:
        self.manifest = manifest
        self.error: str | None = None
        self._file = file
        self._guard = threading.Lock()
        self._writing = threading.Lock()

    def rank(self, rank: int) -> RankRecord | None:
        """Return a rank's record."""
        return next((r for r in self.manifest.ranks if r.rank == rank), None)

    def identify(self, identity: RankIdentity) -> None:
        """Record where a rank runs, once it has reported it."""
        with self._guard:
            record = self.rank(identity.rank)
            if record is not None:
                record.role, record.instance = identity.role, identity.instance
                record.host, record.pid = identity.host or None, identity.pid or None
                record.device = identity.device

    def collection(self, rank: int, status: CollectionStatus) -> None:
        """Record the state of a rank's collection."""
        with self._guard:
            record = self.rank(rank)
            if record is not None:
                note_collection(record, status)
                if status.stop_unix_ns is not None:
                    self.manifest.stopped_unix_ns = max(
                        status.stop_unix_ns, self.manifest.stopped_unix_ns or 0
                    )

    def lost(self, rank: int, state: str, error: str) -> None:
        """Note that a rank failed or is missing."""
        with self._guard:
            record = self.rank(rank)
            if record is not None:
                record.state, record.error = state, error
                for cycle in record.cycles:
                    if cycle.state in ("queued", "parsing", "packing", "verifying"):
                        cycle.state, cycle.error = "interrupted", error

    def artifact(self, status: ArtifactStatus) -> None:
        """Record the state of a cycle."""
        with self._guard:
            record = self.rank(status.rank)
            if record is not None:
                set_cycle(record, cycle_record(status, archive_path(status.rank, status.cycle)))

    def write(self) -> None:
        """Write the manifest; a failure is kept in ``error`` and does not stop anything.

        The disk is not waited for by those who note changes meanwhile.
        """
        with self._writing:
            with self._guard:
                settle(self.manifest)
                text = self.manifest.to_json()
            try:
                self._file.replace(text)
                self.error = None
            except Exception as error:
                self.error = f"{self._file.path} could not be written: {error}"
