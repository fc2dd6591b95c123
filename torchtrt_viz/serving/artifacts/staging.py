"""The staging folder of one job: one recording cycle of one rank, from its export to its archive.

::

    <session>/.staging/rank-00000-cycle-00000-<job>/
        job.json        whose it is, where the archive goes, every file the job may make; never changed
        state.json      progress, for readers; always replaced as a whole
        lock            locked while a process works on the job
        raw/trace.json  the export
        parsed/...      tables made from it

Only files that ``job.json`` registers are ever deleted. After a restart, jobs are found by these folders and
judged by the files in them, not by ``state.json``.
"""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.whole_file import write_whole
from torchtrt_viz.formats.session.manifest import RANK_META, STAGING, archive_path, confined
from torchtrt_viz.serving.artifacts.file_lock import NoFileLocksError, lock_file
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.identity import RankIdentity

__all__ = ["JOB_FORMAT", "PARSED_FILES", "Job", "find_jobs"]

JOB_FORMAT = "torchtrt_viz.job/1"
PARSED_FILES = ("operators.csv", "summary.json", "stacks.folded", "memory_timeline.csv")
"""Files that parsing may make, in packing order; the last two only if their data was collected."""

_JOB, _STATE, _LOCK = "job.json", "state.json", "lock"
_RAW = "raw/trace.json"
_REGISTERED = (
    _RAW,
    f"{_RAW}.tmp",  # torch's own: left behind when its disk is full or the process dies
    *(f"parsed/{name}" for name in PARSED_FILES),
    *(f"parsed/.{name}.tmp" for name in PARSED_FILES),
    RANK_META,
)
_FOLDERS = ("raw", "parsed")
_RACES = 20

# POSIX locks are per process: within one process this set tells who works on what.
_held: set[str] = set()
_held_guard = threading.Lock()


@dataclass
class Job:
    """One recording cycle of one rank.

    Attributes
    ----------
    folder
        The staging folder.
    session_folder
        Where the archive goes: ``session_folder / archive_path(rank, cycle)``.
    collection
        How the recording went, for ``rank.json``; None for a job that was found on disk.
    """

    folder: Path
    session_folder: Path
    job_id: str
    session_id: str
    identity: RankIdentity
    cycle: int
    mode: str
    config: dict[str, Any]
    created_unix_ns: int
    registered: tuple[str, ...] = _REGISTERED
    collection: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    _lock: IO[bytes] | None = field(default=None, repr=False, compare=False)

    # -- places --------------------------------------------------------------------------------------

    @property
    def raw(self) -> Path:
        """The exported trace."""
        return self.folder / _RAW

    @property
    def parsed(self) -> Path:
        """Folder of the tables."""
        return self.folder / "parsed"

    @property
    def archive(self) -> Path:
        """Final place of the archive."""
        return self.session_folder / archive_path(self.identity.rank, self.cycle)

    @property
    def archive_name(self) -> str:
        """The archive's path below the session's folder."""
        return archive_path(self.identity.rank, self.cycle)

    @property
    def unpublished(self) -> Path:
        """The archive before it is verified: in its final folder, so that publishing is one rename."""
        return self.archive.with_name(f".{self.archive.name}.{self.job_id}.tmp")

    # -- making and finding ----------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        root: Path,
        session_folder: Path,
        session_id: str,
        identity: RankIdentity,
        cycle: int,
        mode: str,
        config: ProfileConfig,
        created_unix_ns: int,
    ) -> Job:
        """Make the staging folder below ``root``, locked by this process.

        Raises
        ------
        OSError
            When it cannot be made.
        """
        job_id = os.urandom(4).hex()
        folder = root / f"rank-{identity.rank:05d}-cycle-{cycle:05d}-{job_id}"
        job = cls(
            folder,
            session_folder,
            job_id,
            session_id,
            identity,
            cycle,
            mode,
            config.to_dict(),
            created_unix_ns,
        )
        for _ in range(_RACES):
            try:
                folder.mkdir(parents=True)
                break
            except FileNotFoundError:
                continue  # another rank's last job has just deleted the shared staging folder
        for name in _FOLDERS:
            (folder / name).mkdir()
        if not job.lock():
            raise BlockingIOError(f"{folder} is locked by another process")
        write_whole(folder / _JOB, job._to_json(), durable=False)
        return job

    def _to_json(self) -> bytes:
        import orjson

        return orjson.dumps(
            {
                "format": JOB_FORMAT,
                "job_id": self.job_id,
                "session_id": self.session_id,
                "session_folder": str(self.session_folder.resolve()),
                "identity": self.identity.to_dict(),
                "cycle": self.cycle,
                "mode": self.mode,
                "config": self.config,
                "created_unix_ns": self.created_unix_ns,
                "registered": list(self.registered),
            },
            option=orjson.OPT_INDENT_2,
        )

    @classmethod
    def open(cls, folder: Path) -> Job:
        """Read the job of a staging folder.

        Raises
        ------
        TraceFormatError
            When its description is missing or not what this version writes.
        """
        import orjson

        path = folder / _JOB
        try:
            document = orjson.loads(path.read_bytes())
            if document["format"] != JOB_FORMAT:
                raise KeyError(f"format {document['format']!r}")
            registered = tuple(document["registered"])
            if any(confined(folder, name) is None for name in registered):
                raise KeyError("registered files outside of the folder")
            return cls(
                folder=folder,
                session_folder=Path(document["session_folder"]),
                job_id=str(document["job_id"]),
                session_id=str(document["session_id"]),
                identity=RankIdentity(**document["identity"]),
                cycle=int(document["cycle"]),
                mode=str(document["mode"]),
                config=dict(document["config"]),
                created_unix_ns=int(document["created_unix_ns"]),
                registered=registered,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TraceFormatError(
                "the description of a staged job cannot be read",
                path=path,
                found=str(error),
                hint="The files beside it are kept; raw/trace.json can be loaded as it is",
            ) from error

    # -- who works on it -------------------------------------------------------------------------------

    def lock(self) -> bool:
        """Claim the job for this process; False when another process works on it.

        Where the file system has no locks, a job counts as another's while the process that recorded it lives
        on this machine.

        Raises
        ------
        OSError
            When the lock's file cannot be opened or locked.
        """
        key = str(self.folder.resolve())
        with _held_guard:
            if key in _held:
                return False
            stream = (self.folder / _LOCK).open("ab")
            try:
                claimed = lock_file(stream)
            except NoFileLocksError:
                claimed = not self._elsewhere()
            except OSError:
                stream.close()
                raise
            if not claimed:
                stream.close()
                return False
            _held.add(key)
            self._lock = stream
        return True

    def _elsewhere(self) -> bool:
        """Whether the process that recorded the job lives on; for file systems without locks."""
        pid = self.identity.pid
        if pid in (0, os.getpid()) or self.identity.host != socket.gethostname():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

    def release(self) -> None:
        """Release the claim (the job is done, or will be retried later)."""
        with _held_guard:
            if self._lock is not None:
                _held.discard(str(self.folder.resolve()))
                self._lock.close()
                self._lock = None

    # -- notes -----------------------------------------------------------------------------------------

    def note(self, state: dict[str, Any]) -> None:
        """Write the job's progress. A full disk may prevent it; nothing depends on it."""
        import orjson

        try:
            write_whole(self.folder / _STATE, orjson.dumps(state, option=orjson.OPT_INDENT_2), durable=False)
        except OSError:
            return

    def noted(self) -> dict[str, Any]:
        """Return the last progress written; {} when it cannot be read."""
        import orjson

        try:
            document = orjson.loads((self.folder / _STATE).read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return {}
        return document if isinstance(document, dict) else {}

    # -- deleting --------------------------------------------------------------------------------------

    def delete(self) -> None:
        """Delete the registered files, then the folder.

        ``job.json`` goes last, so that an interrupted deletion can be resumed.

        Raises
        ------
        OSError
            When a file cannot be deleted, or files that the job did not make lie in the folder.
        """
        for name in self.registered:
            (self.folder / name).unlink(missing_ok=True)
        for name in _FOLDERS:
            folder = self.folder / name
            if folder.exists():
                folder.rmdir()
        own = {_JOB, _STATE, _LOCK}
        others = sorted(p.name for p in self.folder.iterdir() if p.name not in own and not _is_note(p.name))
        if others:
            raise OSError(f"{self.folder} holds files that the job did not make: {', '.join(others[:5])}")
        for path in list(self.folder.iterdir()):
            if path.name != _JOB:
                path.unlink()
        (self.folder / _JOB).unlink(missing_ok=True)
        self.folder.rmdir()
        try:
            self.folder.parent.rmdir()  # the staging folder itself, when this was its last job
        except OSError:
            return


def _is_note(name: str) -> bool:
    """Whether a file is a half-written ``state.json`` or ``job.json`` of this job."""
    return name.startswith((f".{_STATE}.", f".{_JOB}.")) and name.endswith(".tmp")


def find_jobs(roots: list[Path]) -> list[Path]:
    """List staging folders below session folders, profile folders and spare roots, by name."""
    found: dict[Path, None] = {}
    for root in roots:
        if not root.is_dir():
            continue
        for pattern in (f"{STAGING}/*/{_JOB}", f"*/{STAGING}/*/{_JOB}", f"*/{_JOB}"):
            for path in sorted(root.glob(pattern)):
                found.setdefault(path.parent.resolve())
    return list(found)
