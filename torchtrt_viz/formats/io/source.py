"""A trace's bytes: of a file, of a member of an archive, or of memory; decompressed on the way.

Where the stored bytes lie is the business of `formats.io.stored`, what compression hides that of
`formats.io.decompress`; archives are opened here. Nothing is ever extracted to disk.
"""

from __future__ import annotations

import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, cast

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io import decompress
from torchtrt_viz.formats.io.decompress import MAX_EXPANSION, DamagedStreamError
from torchtrt_viz.formats.io.progress import Progress
from torchtrt_viz.formats.io.stored import InMemory, OnDisk, Stored

__all__ = [
    "HEAD_BYTES",
    "MAX_EXPANSION",
    "MAX_READ_BYTES",
    "TAR_BLOCK",
    "DamagedStreamError",
    "Look",
    "Source",
    "archive_kind",
    "archive_members",
    "folder_of",
]

MAX_READ_BYTES = 2 << 30
"""Refuse to read a whole (non-streamed) document larger than this into memory."""

HEAD_BYTES = 1 << 16
"""What a file is, is told by so many first bytes of its uncompressed content."""

_BLOCK = 1 << 20

TAR_BLOCK = 1 << 18
"""Bytes that an archive is read by.

Few steps in the interpreter, so that a thread which reads an archive beside an engine's loop seldom asks for
its lock, and small enough that the memory is used again instead of being had from the system for each block.
"""

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Look:
    """How a file begins.

    Attributes
    ----------
    head
        The first bytes of the uncompressed content.
    archive
        "zip", "tar" (also compressed), or None for a file that is no archive.
    """

    head: bytes
    archive: str | None


class Source:
    """Bytes of one trace file.

    Parameters
    ----------
    stored
        File on disk, or the archive that holds the member; or stored bytes of another kind.
    member
        Name of the member inside the archive; None for the file itself.
    data
        The bytes themselves, for content that is already in memory; ``stored`` is then only a label.
    """

    def __init__(
        self, stored: str | PathLike[str] | Stored, member: str | None = None, data: bytes | None = None
    ) -> None:
        if data is not None:
            self._stored: Stored = InMemory(fspath(cast(str, stored)), data)
        elif isinstance(stored, (str, PathLike)):
            self._stored = OnDisk(stored)
        else:
            self._stored = stored
        self._members: tuple[str, ...] = () if member is None else (member,)
        self._outer: Source | None = None

    def over(self, stored: Stored) -> Source:
        """Return the same file with other stored bytes: what its own ones turned out to enclose."""
        made = Source(stored)
        made._outer = self
        return made

    def _on(self, stored: Stored, members: tuple[str, ...]) -> Source:
        made = Source(stored)
        made._members = members
        return made

    def inside(self, member: str) -> Source:
        """Return a member of this archive."""
        return self._on(self._stored, (*self._members, member))

    def beside(self, filename: str) -> Source | None:
        """Return the file of that name in the same folder (of a disk, a URL or an archive); None for none.

        Whether an archive has such a member is not known before it is read.
        """
        if self._members:
            within = self._members[-1].replace("\\", "/").rpartition("/")
            return self._on(self._stored, (*self._members[:-1], f"{within[0]}{within[1]}{filename}"))
        stored = self._stored.beside(filename)
        return None if stored is None else Source(stored)

    def local(self, progress: Progress | None = None) -> Source:
        """Return the same bytes on this machine: itself, or a copy of what lies behind a URL."""
        if self._outer is not None:
            outer = self._outer.local(progress)
            return self if outer is self._outer else outer.over(self._stored.local(progress))
        stored = self._stored.local(progress)
        return self if stored is self._stored else self._on(stored, self._members)

    @property
    def path(self) -> Path:
        """Where the stored bytes lie on disk; for those that do not, only a label."""
        return self._stored.path or Path(self._stored.name)

    @property
    def stored_name(self) -> str:
        """Label of the file, or of the archive that holds the member."""
        if self._outer is not None and not self._members:
            return self._outer.stored_name
        return self._stored.name

    @property
    def member(self) -> str | None:
        """Name within the archive; None for a file by itself."""
        if self._outer is not None and not self._members:
            return self._outer.member
        return "!".join(self._members) if self._members else None

    @property
    def name(self) -> str:
        """Label for messages and ``meta["sources"]``: the path, and ``!member`` within an archive."""
        return "!".join((self._stored.name, *self._members))

    @property
    def filename(self) -> str:
        """Last part of the name, for rank patterns and joining sets."""
        if self._outer is not None and not self._members:
            return self._outer.filename
        last = self._members[-1] if self._members else self._stored.name
        return last.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        """Label of the folder that it lies in, of a disk or within an archive."""
        if self._outer is not None and not self._members:
            return self._outer.folder
        if not self._members:
            return folder_of(self._stored.name)
        outer = "!".join((self._stored.name, *self._members[:-1]))
        return f"{outer}!{self._members[-1].replace(chr(92), '/').rpartition('/')[0]}"

    @property
    def on_disk(self) -> bool:
        """Whether the uncompressed bytes lie on disk as they are (so that they can be mapped)."""
        return not self._members and self._stored.path is not None and not self.compressed

    @property
    def compressed(self) -> bool:
        """Whether the content is gzip or zstandard."""
        with self._raw() as stream:
            return decompress.is_compressed(stream.read(4))

    @property
    def stored_bytes(self) -> int | None:
        """Size as stored (compressed), in bytes; None for a member of an archive, or where nothing tells."""
        return None if self._members else self._stored.size

    def stamp(self) -> tuple[int, ...] | None:
        """Return what changes when the stored bytes do; None when they are gone."""
        return self._stored.stamp()

    @contextmanager
    def _raw(self) -> Iterator[BinaryIO]:
        """Open the stored bytes."""
        if not self._members:
            with self._stored.open() as stream:
                yield stream
        else:
            with _open_member(self._on(self._stored, self._members[:-1]), self._members[-1]) as stream:
                yield stream

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the uncompressed content as a forward-only binary stream.

        Raises
        ------
        TraceFormatError
            When the file is missing, or (while reading) damaged or expanding without bound.
        """
        with self._raw() as stream:
            yield decompress.decompressed(stream, self.name, self._raw)

    def blocks(self, size: int = _BLOCK) -> Iterator[bytes]:
        """Yield the uncompressed content in blocks."""
        with self.open() as stream:
            while block := stream.read(size):
                yield block

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """Return up to ``size`` first bytes of the uncompressed content (fewer where it is damaged)."""
        with self.open() as stream:
            return _first(stream, size)

    def look(self, size: int = HEAD_BYTES) -> Look:
        """Return how the file begins: all that is needed to tell what it is, with one opening."""
        with self._raw() as raw:
            magic = raw.read(4)
            if magic == _ZIP:
                return Look(magic, "zip")
            head = _first(decompress.decompressed(raw, self.name, self._raw, magic), size)
        return Look(head, "tar" if head[257:262] == b"ustar" else None)

    def read(self, limit: int = MAX_READ_BYTES) -> bytes:
        """Return the whole uncompressed content.

        Raises
        ------
        TraceFormatError
            When it is longer than ``limit``.
        """
        parts, total = [], 0
        for block in self.blocks():
            total += len(block)
            if total > limit:
                raise TraceFormatError(
                    "the content is too large to be read at once",
                    path=self.name,
                    expected=f"at most {limit} bytes",
                    found="more",
                )
            parts.append(block)
        return b"".join(parts)


def _first(stream: BinaryIO, size: int) -> bytes:
    """Read up to so many bytes, fewer where the stream is damaged."""
    out = b""
    try:
        while len(out) < size and (block := stream.read(size - len(out))):
            out += block
    except TraceFormatError:
        if not out:
            raise
    return out


def folder_of(name: str) -> str:
    """Return the folder of a file on disk or behind a URL, by its name."""
    if "://" not in name:
        return str(Path(name).parent)
    return name.rpartition("/")[0]


#: what the standard library raises on archives whose bytes are wrong
_DAMAGED_ARCHIVE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    NotImplementedError,
    EOFError,
    OSError,
    UnicodeDecodeError,
    IndexError,
    struct.error,
    zlib.error,
)


def archive_kind(source: Source) -> str | None:
    """Tell whether a file is an archive: "zip", "tar" (also compressed), or None."""
    try:
        return source.look().archive
    except DamagedStreamError:  # compressed, and damaged from its start
        return None


def archive_members(source: Source, kind: str | None = None) -> list[tuple[str, int]]:
    """List (name, size in bytes) of the regular files of an archive.

    Names are only labels here: nothing is ever extracted under a member's name, so that ``..`` and
    absolute names cannot reach outside.
    """
    kind = kind or archive_kind(source)
    try:
        if kind == "zip":
            with source.local()._raw() as raw, zipfile.ZipFile(raw) as archive:
                return [(i.filename, i.file_size) for i in archive.infolist() if not i.is_dir()]
        with source.open() as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=TAR_BLOCK) as tar:
            return [(m.name, m.size) for m in tar if m.isfile()]
    except _DAMAGED_ARCHIVE as error:
        raise TraceFormatError("the archive is damaged", path=source.name, found=str(error)) from error


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BinaryIO:
    """Open a member; a directory that points before the file's start is damage like any other."""
    try:
        return cast(BinaryIO, archive.open(info))
    except (ValueError, RuntimeError) as error:
        raise zipfile.BadZipFile(str(error)) from error


@contextmanager
def _open_member(outer: Source, member: str) -> Iterator[BinaryIO]:
    """Open one member of an archive as a forward stream of its stored bytes."""
    label = f"{outer.name}!{member}"
    try:
        if archive_kind(outer) == "zip":
            with outer.local()._raw() as raw, zipfile.ZipFile(raw) as archive:
                info = archive.getinfo(member)
                allowed = max(decompress.FREE_EXPANSION, MAX_EXPANSION * info.compress_size)
                if info.file_size > allowed:
                    raise TraceFormatError(
                        "the archive member expands without bound",
                        path=label,
                        expected=f"at most {allowed} bytes",
                        found=f"{info.file_size} bytes",
                        hint="Extract it yourself if you trust it",
                    )
                if info.flag_bits & 1:
                    raise TraceFormatError(
                        "the archive member is encrypted", path=label, hint="Extract it with its password"
                    )
                with _zip_member(archive, info) as stream:
                    yield stream
            return
        with outer.open() as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=TAR_BLOCK) as tar:
            for entry in tar:
                if entry.name == member and entry.isfile():
                    yield cast(BinaryIO, tar.extractfile(entry))
                    return
    except _DAMAGED_ARCHIVE as error:
        raise TraceFormatError("the archive is damaged", path=label, found=str(error)) from error
    except KeyError:
        pass
    raise TraceFormatError("the archive has no such member", path=label)
