"""Pack a job's files into an archive, verify it, and publish it with one rename."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
from dataclasses import dataclass
from io import BufferedIOBase, RawIOBase
from pathlib import Path
from typing import IO, Any

from torchtrt_viz.errors import CaptureError
from torchtrt_viz.formats.io.source import TAR_BLOCK, Source
from torchtrt_viz.formats.io.whole_file import fsync_folder
from torchtrt_viz.formats.session.health import check_archive
from torchtrt_viz.formats.session.manifest import INVENTORY, INVENTORY_FORMAT, RANK_META
from torchtrt_viz.loading.rank_files import RAW_TRACE
from torchtrt_viz.serving.artifacts.child import ask
from torchtrt_viz.serving.artifacts.staging import PARSED_FILES, Job
from torchtrt_viz.serving.contract.settings import Settings

__all__ = ["Packed", "checksum", "pack", "publish", "published_by", "verify"]

_BLOCK = 1 << 20  # large blocks: the engine's thread waits for the interpreter less often


@dataclass(frozen=True)
class Packed:
    """An archive that was written: member -> (size, SHA-256) of what went in, and of the archive itself."""

    members: dict[str, tuple[int, str]]
    bytes: int
    sha256: str


class _TarStream:
    """A tar archive being written through one buffer: no copy or allocation holds the interpreter."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._buffer = memoryview(bytearray(_BLOCK))
        self._size = 0

    def add(self, entry: tarfile.TarInfo, content: BufferedIOBase | RawIOBase) -> str | None:
        """Write a member of ``entry.size`` bytes; return its SHA-256, None when the content is shorter."""
        self._write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        digest, left = hashlib.sha256(), entry.size
        while left:
            count = content.readinto(self._buffer[: min(left, _BLOCK)])
            if not count:
                return None
            block = self._buffer[:count]
            digest.update(block)
            self._write(block)
            left -= count
        self._fill(tarfile.BLOCKSIZE)
        return digest.hexdigest()

    def end(self) -> None:
        """Write the end of the archive."""
        self._write(bytes(2 * tarfile.BLOCKSIZE))
        self._fill(tarfile.RECORDSIZE)

    def _write(self, block: bytes | memoryview) -> None:
        self._stream.write(block)
        self._size += len(block)

    def _fill(self, unit: int) -> None:
        self._write(bytes(-self._size % unit))


class _Tee:
    """The archive's file being written, its checksum taken on the way."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, block: bytes | memoryview) -> int:
        self._stream.write(block)
        self.digest.update(block)
        self.size += len(block)
        return len(block)

    def flush(self) -> None:
        self._stream.flush()

    def tell(self) -> int:
        return self.size


def _entry(name: str, size: int, mtime_ns: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = 0o644
    entry.mtime = mtime_ns // 10**9
    return entry


def _members(job: Job) -> list[tuple[str, Path]]:
    """The archive's files in order: descriptions first, the large trace last."""
    parsed = [(name, job.parsed / name) for name in PARSED_FILES if (job.parsed / name).exists()]
    return [(RANK_META, job.folder / RANK_META), *parsed, (RAW_TRACE, job.raw)]


def pack(job: Job, level: int) -> Packed:
    """Write the archive under its temporary name; its last member is the inventory of the others.

    Compression and checksums run without the interpreter lock.

    Raises
    ------
    OSError
        When the archive cannot be written.
    CaptureError
        When a staged file changes while it is read.
    """
    from isal import igzip

    job.archive.parent.mkdir(parents=True, exist_ok=True)
    members: dict[str, tuple[int, str]] = {}
    with job.unpublished.open("wb") as file:
        tee = _Tee(file)
        with igzip.IGzipFile(filename="", mode="wb", compresslevel=level, fileobj=tee, mtime=0) as compressed:
            tar = _TarStream(compressed)
            for name, path in _members(job):
                members[name] = _add(tar, name, path, job.created_unix_ns)
            data = _inventory(job, members)
            tar.add(_entry(INVENTORY, len(data), job.created_unix_ns), io.BytesIO(data))
            tar.end()
        file.flush()
        os.fsync(file.fileno())
    return Packed(members, tee.size, tee.digest.hexdigest())


def _add(tar: _TarStream, name: str, path: Path, mtime_ns: int) -> tuple[int, str]:
    with path.open("rb", buffering=0) as stream:
        size = os.fstat(stream.fileno()).st_size
        digest = tar.add(_entry(name, size, mtime_ns), stream)
        if digest is None:
            raise CaptureError(f"{path} became shorter while it was packed")
        if stream.read(1):
            raise CaptureError(f"{path} became longer while it was packed")
    return size, digest


def _inventory(job: Job, members: dict[str, tuple[int, str]]) -> bytes:
    import orjson

    files = [{"name": n, "bytes": size, "sha256": digest} for n, (size, digest) in members.items()]
    return orjson.dumps(
        {"format": INVENTORY_FORMAT, "job_id": job.job_id, "session_id": job.session_id, "files": files},
        option=orjson.OPT_INDENT_2,
    )


def checksum(path: Path | str) -> tuple[int, str]:
    """Return the size of a file in bytes and its SHA-256."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as stream:
        while block := stream.read(TAR_BLOCK):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()


def verify(job: Job, packed: Packed, settings: Settings) -> None:
    """Read the archive back and compare: its bytes with what was written, each member with its source.

    Raises
    ------
    CaptureError
        When anything differs, or it could not be read; the archive is then not published.
    """
    read = ask("read back", str(job.unpublished), settings, "reading the archive back")
    if (read["bytes"], read["sha256"]) != (packed.bytes, packed.sha256):
        raise CaptureError(
            f"{job.unpublished} is not what was written to it ({read['bytes']} bytes, {packed.bytes} were "
            "written): the disk is faulty, or something changed the file"
        )
    if read["damage"] is not None:
        raise CaptureError(f"{job.unpublished} cannot be read back: {read['damage']}")
    if {name: tuple(member) for name, member in read["members"].items()} != packed.members:
        raise CaptureError(f"{job.unpublished} holds other members than were packed")


def published_by(job: Job) -> dict[str, Any] | None:
    """Return the inventory of the published archive, if this very job made it and it is whole."""
    import orjson

    if not job.archive.exists():
        return None
    check = check_archive(Source(job.archive))
    if check.damage is not None:
        return None
    document = orjson.loads(check.inventory)
    return document if document.get("job_id") == job.job_id else None


def publish(job: Job) -> None:
    """Give the verified archive its final name, unless another job's archive has it.

    Raises
    ------
    CaptureError
        When the name is taken, because two workers claimed the same rank.
    """
    try:
        # A link fails where the name exists; a rename would replace what lies there.
        os.link(job.unpublished, job.archive)
        job.unpublished.unlink()
    except FileExistsError as error:
        raise CaptureError(
            f"{job.archive} exists already, made by another job: two workers share rank {job.identity.rank} "
            "in this session. The recording is kept in its staging folder"
        ) from error
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS):
            raise
        if job.archive.exists():  # file systems without links
            raise CaptureError(f"{job.archive} exists already, made by another job") from error
        job.unpublished.rename(job.archive)
    fsync_folder(job.archive.parent)
    fsync_folder(job.session_folder)
