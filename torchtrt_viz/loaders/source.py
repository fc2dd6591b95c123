"""Where a trace's bytes come from: a file, a member of an archive, or memory; decompressed on the way.

Compression is told by content, never by name. Streams are bounded: an input that expands beyond
`MAX_EXPANSION` times its size is refused as hostile instead of filling the memory.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, cast

from torchtrt_viz.errors import TraceFormatError

__all__ = ["MAX_EXPANSION", "MAX_READ_BYTES", "Source", "archive_members", "archive_kind"]

MAX_EXPANSION = 500
"""Refuse streams that decompress to more than this multiple of their input (after the first 64 MiB)."""

MAX_READ_BYTES = 2 << 30
"""Refuse to read a whole (non-streamed) document larger than this into memory."""

_FREE_EXPANSION = 64 << 20
_BLOCK = 1 << 20

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = b"PK\x03\x04"


class Source:
    """Bytes of one trace file.

    Parameters
    ----------
    path
        File on disk, or the archive that holds the member.
    member
        Name of the member inside the archive; None for the file itself.
    data
        The bytes themselves, for content that is already in memory; ``path`` is then only a label.
    """

    def __init__(self, path: str | PathLike[str], member: str | None = None, data: bytes | None = None) -> None:
        self.path = Path(fspath(path))
        self.member = member
        self._data = data

    @property
    def name(self) -> str:
        """Label for messages and ``meta["sources"]``: the path, and ``!member`` within an archive."""
        return str(self.path) if self.member is None else f"{self.path}!{self.member}"

    @property
    def filename(self) -> str:
        """Last part of the name, for rank patterns and joining sets."""
        return (self.member or str(self.path)).replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def on_disk(self) -> bool:
        """Whether the uncompressed bytes lie on disk as they are (so that they can be mapped)."""
        return self.member is None and self._data is None and not self.compressed

    @property
    def compressed(self) -> bool:
        """Whether the content is gzip or zstandard."""
        with self._raw() as stream:
            return stream.read(4)[:2] == GZIP or self._magic() == ZSTD

    def _magic(self) -> bytes:
        with self._raw() as stream:
            return stream.read(4)

    @property
    def stored_bytes(self) -> int:
        """Size as stored (compressed), in bytes."""
        if self._data is not None:
            return len(self._data)
        if self.member is None:
            return self.path.stat().st_size
        with self._raw() as stream:
            stream.seek(0, io.SEEK_END)
            return stream.tell()

    @contextmanager
    def _raw(self) -> Iterator[BinaryIO]:
        """Open the stored bytes."""
        if self._data is not None:
            yield io.BytesIO(self._data)
        elif self.member is None:
            try:
                stream = self.path.open("rb")
            except FileNotFoundError:
                raise TraceFormatError("no such file", path=self.name, hint="Check the path") from None
            except PermissionError:
                raise TraceFormatError("the file may not be read", path=self.name, hint="Check its permissions") from None
            with stream:
                yield stream
        else:
            with _open_member(self.path, self.member) as member:
                yield member

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the uncompressed content as a forward-only binary stream.

        Raises
        ------
        TraceFormatError
            When the file is missing, or (while reading) damaged or expanding without bound.
        """
        with self._raw() as raw:
            magic = raw.read(4)
            raw.seek(0)
            if magic[:2] == GZIP:
                from isal import igzip

                yield cast(BinaryIO, _Bounded(igzip.GzipFile(fileobj=raw, mode="rb"), self))
            elif magic == ZSTD:
                import zstandard

                reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(raw, read_across_frames=True)
                yield cast(BinaryIO, _Bounded(reader, self))
            else:
                yield raw

    def blocks(self, size: int = _BLOCK) -> Iterator[bytes]:
        """Yield the uncompressed content in blocks."""
        with self.open() as stream:
            while block := stream.read(size):
                yield block

    def head(self, size: int = 1 << 16) -> bytes:
        """Return up to ``size`` first bytes of the uncompressed content (fewer where it is damaged)."""
        out = b""
        try:
            with self.open() as stream:
                while len(out) < size and (block := stream.read(size - len(out))):
                    out += block
        except TraceFormatError:
            if not out:
                raise
        return out

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


class _Bounded:
    """A decompressing stream that gives up on hostile input and names the file on damaged input."""

    def __init__(self, stream: io.BufferedIOBase | BinaryIO, source: Source) -> None:
        self._stream = stream
        self._source = source
        self._total = 0
        self._limit = max(_FREE_EXPANSION, MAX_EXPANSION * source.stored_bytes)

    def read(self, size: int = -1) -> bytes:
        import zlib

        import zstandard
        from isal import isal_zlib

        if size is None or size < 0:
            size = self._limit + 1
        try:
            block = self._stream.read(size)
        except (EOFError, OSError, zlib.error, isal_zlib.error, zstandard.ZstdError) as error:
            raise TraceFormatError(
                "the compressed content is damaged",
                path=self._source.name,
                offset=self._total,
                expected="a whole gzip or zstandard stream",
                found=str(error),
                hint="Copy the file again; if its writer was killed, what precedes the damage can still be loaded",
            ) from error
        self._total += len(block)
        if self._total > self._limit:
            raise TraceFormatError(
                "the compressed content expands without bound",
                path=self._source.name,
                offset=self._total,
                expected=f"at most {MAX_EXPANSION} times the stored size",
                found=f"more than {self._limit} bytes",
                hint="Decompress it yourself if you trust it",
            )
        return block

    def close(self) -> None:
        self._stream.close()


def archive_kind(source: Source) -> str | None:
    """Tell whether a file is an archive: "zip", "tar" (also compressed), or None."""
    with source._raw() as raw:
        if raw.read(4) == ZIP:
            return "zip"
    try:
        head = source.head(512)
    except TraceFormatError:
        return None
    return "tar" if len(head) >= 262 and head[257:262] == b"ustar" else None


def archive_members(source: Source) -> list[tuple[str, int]]:
    """List (name, size in bytes) of the regular files of an archive.

    Names are only labels here: nothing is ever extracted under a member's name, so that ``..`` and
    absolute names cannot reach outside.
    """
    kind = archive_kind(source)
    try:
        if kind == "zip":
            with zipfile.ZipFile(source.path) as archive:
                return [(i.filename, i.file_size) for i in archive.infolist() if not i.is_dir()]
        with source.open() as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            return [(m.name, m.size) for m in tar if m.isfile()]
    except (zipfile.BadZipFile, tarfile.TarError, NotImplementedError) as error:
        raise TraceFormatError("the archive is damaged", path=source.name, found=str(error)) from error


@contextmanager
def _open_member(path: Path, member: str) -> Iterator[BinaryIO]:
    """Open one member of an archive as a seekable stream of its stored bytes."""
    outer = Source(path)
    kind = archive_kind(outer)
    try:
        if kind == "zip":
            with zipfile.ZipFile(path) as archive:
                info = archive.getinfo(member)
                if info.file_size > MAX_EXPANSION * max(info.compress_size, 1) and info.file_size > _FREE_EXPANSION:
                    raise TraceFormatError("the archive member expands without bound", path=f"{path}!{member}")
                with archive.open(info) as stream:
                    yield cast(BinaryIO, stream)
            return
        with outer.open() as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            for entry in tar:
                if entry.name == member and entry.isfile():
                    opened = tar.extractfile(entry)
                    assert opened is not None
                    yield cast(BinaryIO, _Forward(opened))
                    return
    except (zipfile.BadZipFile, tarfile.TarError, NotImplementedError) as error:
        raise TraceFormatError("the archive is damaged", path=f"{path}!{member}", found=str(error)) from error
    except KeyError:
        pass
    raise TraceFormatError("the archive has no such member", path=f"{path}!{member}")


class _Forward:
    """A forward stream of a tar member that can still go back to its start after a first small read."""

    def __init__(self, stream: BinaryIO | io.IOBase) -> None:
        self._stream = stream
        self._held = b""
        self._at_start = True

    def read(self, size: int = -1) -> bytes:
        if self._held:
            out, self._held = (self._held, b"") if size < 0 or size >= len(self._held) else (self._held[:size], self._held[size:])
            return out
        block = cast(BinaryIO, self._stream).read(size)
        if self._at_start and 0 <= size <= 4:
            self._first = block
        else:
            self._first = b""
        self._at_start = False
        return block

    def readinto(self, buffer: bytearray) -> int:
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == io.SEEK_END:
            total = len(self._held)
            while block := cast(BinaryIO, self._stream).read(_BLOCK):
                total += len(block)
            self._total = total
            return total
        if offset == 0 and whence == 0:
            self._held = getattr(self, "_first", b"")
            self._at_start = True
            return 0
        raise io.UnsupportedOperation("a tar member is read forward")

    def tell(self) -> int:
        return getattr(self, "_total", 0)

    def seekable(self) -> bool:
        return False
