"""The manifest of a running session, kept up to date by the process that coordinates it, or by its ranks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from torchtrt_viz.errors import OptionError
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

__all__ = ["SessionBook", "SharedBook"]


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


class SharedBook(SessionBook):
    """The manifest of a session that every rank records by itself: each process writes its own rank only.

    Ranks of the process group that have not written anything yet are expected, so that the session is
    complete only when all of them are.
    """

    def __init__(self, file: ManifestFile, manifest: Manifest, identity: RankIdentity) -> None:
        super().__init__(file, manifest)
        self._identity = identity
        self._claimed = False

    def claim(self) -> None:
        """Write the rank into the manifest for the first time.

        Raises
        ------
        OptionError
            When another process has recorded this rank in this session.
        OSError
            When the manifest cannot be written.
        """
        self._change(self._check)
        self._claimed = True

    def unclaimed(self, error: str) -> None:
        """Go on although the rank could not be claimed: the next write tries again."""
        self._claimed, self.error = True, error

    def write(self) -> None:
        """Write what is known of this rank, once it is claimed; a failure is kept in ``error``."""
        if not self._claimed:
            return
        with self._writing:
            try:
                self._change(lambda disk: None)
                self.error = None
            except Exception as error:
                self.error = f"{self._file.path} could not be written: {error}"

    def _change(self, check: Callable[[Manifest], None]) -> None:
        with self._guard:  # records of cycles are replaced, never changed
            ranks = [replace(record, cycles=list(record.cycles)) for record in self.manifest.ranks]
            mine = replace(self.manifest, ranks=ranks)

        def merge(disk: Manifest) -> None:
            check(disk)
            known = {record.rank: record for record in disk.ranks}
            known.update((record.rank, record) for record in mine.ranks)
            for rank in range(self._identity.world_size or 0):
                known.setdefault(rank, RankRecord(rank))
            disk.ranks = [known[rank] for rank in sorted(known)]
            stops = [at for at in (disk.stopped_unix_ns, mine.stopped_unix_ns) if at is not None]
            disk.stopped_unix_ns = max(stops, default=None)
            settle(disk)

        self._file.change(merge, lambda: replace(mine, ranks=[]), durable=False)

    def _check(self, disk: Manifest) -> None:
        mine = self._identity
        for record in disk.ranks:
            other = (record.host, record.pid) != (mine.host or None, mine.pid or None)
            if record.rank == mine.rank and record.pid is not None and other:
                raise OptionError(
                    "session_id",
                    disk.session_id,
                    f"another id: process {record.pid} on {record.host} has recorded rank {mine.rank} of "
                    "this session; processes that share an id need ranks of their own (RankIdentity)",
                )
