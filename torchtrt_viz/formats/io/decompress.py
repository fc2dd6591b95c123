"""Compressed streams read forward: told by content, bounded, and as far as damaged ones can be read.

An input that expands beyond `MAX_EXPANSION` times its size is refused as hostile, before it fills the memory.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, cast

from torchtrt_viz.errors import TraceFormatError

__all__ = ["FREE_EXPANSION", "MAX_EXPANSION", "DamagedStreamError", "decompressed", "is_compressed"]

MAX_EXPANSION = 500
"""Refuse streams that decompress to more than this multiple of their input (after the first 64 MiB)."""

FREE_EXPANSION = 64 << 20
"""So many bytes may come out of any input, however small."""

_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"

Reopen = Callable[[], AbstractContextManager[BinaryIO]]


class DamagedStreamError(TraceFormatError):
    """Compressed content that cannot be read any further; what came before it is whole."""


def is_compressed(magic: bytes) -> bool:
    """Whether content that begins so is gzip or zstandard."""
    return magic[:2] == _GZIP or magic[:4] == _ZSTD


def decompressed(stream: BinaryIO, name: str, reopen: Reopen, magic: bytes | None = None) -> BinaryIO:
    """Return the uncompressed content of a stream of stored bytes, as a forward stream.

    Parameters
    ----------
    name
        Label for messages.
    reopen
        Opens the stored bytes anew: what lies before damage is read a second time to be had whole.
    magic
        The first four bytes, when they were read from the stream already.
    """
    magic = stream.read(4) if magic is None else magic
    raw = _Counted(magic, stream)
    if magic[:2] == _GZIP:
        from isal import igzip  # slow to import, and plain files do without

        return cast(
            BinaryIO,
            _Bounded(
                igzip.GzipFile(fileobj=raw, mode="rb"),
                raw,
                name,
                lambda skip, size: _salvage(reopen, skip, size),
            ),
        )
    if magic == _ZSTD:
        import zstandard

        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(
            cast(BinaryIO, raw), read_across_frames=True
        )
        return cast(BinaryIO, _Bounded(reader, raw, name, lambda skip, size: b""))
    return cast(BinaryIO, raw)


def _salvage(reopen: Reopen, skip: int, size: int) -> bytes:
    """Return up to ``size`` bytes of damaged gzip content from ``skip`` on, as far as they can be had."""
    out, passed = b"", 0
    stream = zlib.decompressobj(wbits=31)
    with reopen() as raw:
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
        if self._total > max(FREE_EXPANSION, MAX_EXPANSION * self._raw.consumed):
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
