"""A session's folder, and its manifest as the coordinating process writes it."""

from __future__ import annotations

import bisect
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.formats.io.whole_file import write_whole
from torchtrt_viz.formats.session.manifest import (
    MANIFEST,
    CycleRecord,
    Manifest,
    RankRecord,
    parse_manifest,
)
from torchtrt_viz.serving.artifacts.file_lock import NoFileLocksError, lock_file
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus

__all__ = [
    "ManifestFile",
    "check_session_id",
    "cycle_record",
    "new_manifest",
    "new_session_id",
    "note_collection",
    "rank_record",
    "set_cycle",
    "settle",
]

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LOCK = ".manifest.lock"
_guard = threading.Lock()  # file locks do not keep threads of one process apart


def new_session_id() -> str:
    """Return an id that sorts by time and that no other process makes."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"{stamp}-{os.urandom(4).hex()}"


def check_session_id(session_id: str) -> str:
    """Return the id if it can name a folder.

    Raises
    ------
    OptionError
        For anything but 1 to 128 letters, digits, dots, dashes and underscores, the first a letter or digit.
    """
    if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):
        raise OptionError(
            "session_id",
            session_id,
            "1 to 128 letters, digits, '.', '-' and '_', beginning with a letter or digit",
        )
    return session_id


class ManifestFile:
    """``manifest.json`` of one session: read, changed and replaced whole, by one writer at a time."""

    def __init__(self, session_folder: Path) -> None:
        self.folder = session_folder
        self.path = session_folder / MANIFEST

    def read(self) -> Manifest | None:
        """Return what lies on disk; None when there is no manifest."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return parse_manifest(data, str(self.path))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with _guard, (self.folder / _LOCK).open("ab") as stream:
            with suppress(NoFileLocksError):  # the manifest is replaced whole, with or without a lock
                lock_file(stream, wait=True)
            yield

    def write(self, manifest: Manifest) -> None:
        """Replace the manifest."""
        with self._alone():
            write_whole(self.path, manifest.to_json())

    def replace(self, document: bytes) -> None:
        """Replace the manifest's text; survives the process, not necessarily a loss of power."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            write_whole(self.path, document, durable=False)

    def change(
        self,
        function: Callable[[Manifest], None],
        create: Callable[[], Manifest] | None = None,
        *,
        durable: bool = True,
    ) -> None:
        """Change the manifest that lies on disk; make one with ``create`` where there is none.

        Parameters
        ----------
        durable
            Survive a loss of power too, not the process alone.

        Raises
        ------
        OSError
            When it cannot be written (a full disk); the old one is then still there.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            try:
                manifest = self.read()
            except TraceFormatError:
                self.path.replace(self.path.with_name(f"{MANIFEST}.damaged"))
                manifest = None
            if manifest is None:
                if create is None:
                    return
                manifest = create()
            function(manifest)
            write_whole(self.path, manifest.to_json(), durable=durable)


def new_manifest(session_id: str, mode: str, config: ProfileConfig, ranks: list[RankRecord]) -> Manifest:
    """Describe a session that is about to start."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        package = version("torchtrt-viz")
    except PackageNotFoundError:
        package = None
    return Manifest(
        session_id=session_id,
        mode=mode,
        config=config.to_dict(),
        created_unix_ns=time.time_ns(),
        package_version=package,
        coordinator_host=socket.gethostname(),
        ranks=ranks,
    )


def rank_record(identity: RankIdentity, state: str = "expected") -> RankRecord:
    """Describe a rank that is expected."""
    return RankRecord(
        rank=identity.rank,
        role=identity.role,
        instance=identity.instance,
        host=identity.host or None,
        pid=identity.pid or None,
        device=identity.device,
        state=state,
    )


def note_collection(record: RankRecord, status: CollectionStatus) -> None:
    """Write into a rank's record how its collection ended."""
    record.start_unix_ns = status.start_unix_ns
    record.stop_unix_ns = status.stop_unix_ns
    record.cut_at_start = list(status.cut_at_start)
    record.cut_at_stop = list(status.cut_at_stop)
    record.error = status.error
    if status.state != "idle":
        record.state = "recording"
    elif status.error is not None:
        record.state = "failed"
    else:
        record.state = "collected" if status.cycles else "nothing_recorded"


def cycle_record(status: ArtifactStatus, archive_name: str) -> CycleRecord:
    """Return a cycle's record for the manifest."""
    published = status.state in ("published", "cleanup_failed")
    return CycleRecord(
        cycle=status.cycle,
        state=status.state,
        archive=archive_name if published else None,
        bytes=status.bytes,
        sha256=status.sha256,
        stage=status.stage,
        error=status.error,
        staging=status.staging,
        cleanup_error=status.cleanup_error,
    )


def set_cycle(record: RankRecord, cycle: CycleRecord) -> None:
    """Put a cycle's record in place of an earlier one."""
    at = bisect.bisect_left(record.cycles, cycle.cycle, key=lambda c: c.cycle)
    if at < len(record.cycles) and record.cycles[at].cycle == cycle.cycle:
        record.cycles[at] = cycle
    else:
        record.cycles.insert(at, cycle)


def settle(manifest: Manifest) -> None:
    """Set the session's state from those of its ranks."""
    live = any(r.state in ("expected", "recording") for r in manifest.ranks)
    waiting = any(
        c.state in ("queued", "parsing", "packing", "verifying") for r in manifest.ranks for c in r.cycles
    )
    if live:
        manifest.state = "collecting"
    elif waiting:
        manifest.state = "processing"
    elif manifest.failed_ranks():
        manifest.state = "failed"
    else:
        manifest.state = "incomplete" if manifest.incomplete_ranks() else "complete"
