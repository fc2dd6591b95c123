"""Where a trace's bytes come from: a file, a member of an archive, or memory; decompressed on the way.

Compression is told by content, never by name. Streams are bounded: an input that expands beyond
`MAX_EXPANSION` times its size is refused as hostile instead of filling the memory.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, cast

from torchtrt_viz.errors import TraceFormatError

__all__ = [
    "MAX_EXPANSION",
    "MAX_READ_BYTES",
    "TAR_BLOCK",
    "DamagedStreamError",
    "Source",
    "archive_kind",
    "archive_members",
]

MAX_EXPANSION = 500
"""Refuse streams that decompress to more than this multiple of their input (after the first 64 MiB)."""

MAX_READ_BYTES = 2 << 30
"""Refuse to read a whole (non-streamed) document larger than this into memory."""

_FREE_EXPANSION = 64 << 20
_BLOCK = 1 << 20

TAR_BLOCK = 1 << 18
"""Bytes that an archive is read by.

Few steps in the interpreter, so that a thread which reads an archive beside an engine's loop seldom asks for
its lock, and small enough that the memory is used again instead of being had from the system for each block.
"""

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = b"PK\x03\x04"


class DamagedStreamError(TraceFormatError):
    """Compressed content that cannot be read any further; what came before it is whole."""


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

    def __init__(
        self, path: str | PathLike[str], member: str | None = None, data: bytes | None = None
    ) -> None:
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
            magic = stream.read(4)
        return magic[:2] == GZIP or magic == ZSTD

    @property
    def stored_bytes(self) -> int | None:
        """Size as stored (compressed), in bytes; None for a member of an archive."""
        if self._data is not None:
            return len(self._data)
        return self.path.stat().st_size if self.member is None else None

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
                raise TraceFormatError(
                    "the file may not be read", path=self.name, hint="Check its permissions"
                ) from None
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
        with self._raw() as stream:
            magic = stream.read(4)
            raw = _Counted(magic, stream)
            if magic[:2] == GZIP:
                from isal import igzip

                yield cast(
                    BinaryIO, _Bounded(igzip.GzipFile(fileobj=raw, mode="rb"), raw, self.name, self._salvage)
                )
            elif magic == ZSTD:
                import zstandard

                reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(
                    cast(BinaryIO, raw), read_across_frames=True
                )
                yield cast(BinaryIO, _Bounded(reader, raw, self.name, lambda skip, size: b""))
            else:
                yield cast(BinaryIO, raw)

    def _salvage(self, skip: int, size: int) -> bytes:
        """Return up to ``size`` bytes of damaged gzip content from ``skip`` on, as far as they can be had."""
        out, passed = b"", 0
        stream = zlib.decompressobj(wbits=31)
        with self._raw() as raw:
            while len(out) < size and (chunk := raw.read(512)):
                try:
                    while chunk:
                        part = stream.decompress(chunk)
                        passed += len(part)
                        out += part[max(0, len(part) - (passed - skip)) :] if passed > skip else b""
                        chunk = stream.unused_data
                        if stream.eof:
                            stream = zlib.decompressobj(wbits=31)
                except zlib.error:
                    break
        return out[:size]

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


class _Counted:
    """A forward stream whose first bytes were looked at already; counts what is read from it."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest
        self.consumed = 0

    def read(self, size: int = -1) -> bytes:
        if self._first:
            if 0 <= size < len(self._first):
                block, self._first = self._first[:size], self._first[size:]
            else:
                more = self._rest.read(size - len(self._first) if size > 0 else size)
                block, self._first = self._first + more, b""
        else:
            block = self._rest.read(size)
        self.consumed += len(block)
        return block

    def readinto(self, buffer: bytearray | memoryview) -> int:
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """The stream below belongs to whoever opened it."""


def _damage() -> tuple[type[Exception], ...]:
    """What the decompressors raise on damaged input."""
    import zlib

    import zstandard
    from isal import isal_zlib

    isal_error: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # the stub calls it an instance
    return (EOFError, OSError, zlib.error, isal_error, zstandard.ZstdError)


class _Bounded:
    """A decompressing stream that gives up on hostile input and names the file on damaged input."""

    def __init__(
        self,
        stream: io.BufferedIOBase | BinaryIO,
        raw: _Counted,
        name: str,
        salvage: Callable[[int, int], bytes],
    ) -> None:
        self._stream = stream
        self._raw = raw
        self._name = name
        self._salvage = salvage
        self._total = 0
        self._failed: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_BLOCK), b""))
        try:
            if self._failed is not None:
                raise self._failed
            block = self._stream.read(size)
        except _damage() as error:
            # The reader loses what it had decompressed before it met the damage.
            rest = b"" if self._failed is not None else self._salvage(self._total, size)
            self._failed = error
            if rest:
                return self._counted(rest)
            raise DamagedStreamError(
                "the compressed content is damaged",
                path=self._name,
                offset=self._total,
                expected="a whole gzip or zstandard stream",
                found=str(error),
                hint="Copy the file again; if its writer was killed, what precedes the damage is readable",
            ) from error
        return self._counted(block)

    def _counted(self, block: bytes) -> bytes:
        self._total += len(block)
        if self._total > max(_FREE_EXPANSION, MAX_EXPANSION * self._raw.consumed):
            raise TraceFormatError(
                "the compressed content expands without bound",
                path=self._name,
                offset=self._total,
                expected=f"at most {MAX_EXPANSION} times the stored size",
                found=f"{self._total} bytes from {self._raw.consumed}",
                hint="Decompress it yourself if you trust it",
            )
        return block

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()


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
        with source.open() as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=TAR_BLOCK) as tar:
            return [(m.name, m.size) for m in tar if m.isfile()]
    except _DAMAGED_ARCHIVE as error:
        raise TraceFormatError("the archive is damaged", path=source.name, found=str(error)) from error


@contextmanager
def _open_member(path: Path, member: str) -> Iterator[BinaryIO]:
    """Open one member of an archive as a forward stream of its stored bytes."""
    outer = Source(path)
    label = f"{path}!{member}"
    try:
        if archive_kind(outer) == "zip":
            with zipfile.ZipFile(path) as archive:
                info = archive.getinfo(member)
                allowed = max(_FREE_EXPANSION, MAX_EXPANSION * info.compress_size)
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
                with archive.open(info) as stream:
                    yield cast(BinaryIO, stream)
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
