"""Bytes that enclose others: gzip within gzip, text in UTF-16 or UTF-32.

What is enclosed is read as a stream out of what encloses it, whenever somebody wants it; nothing is copied.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from torchtrt_viz.formats.io.progress import Progress
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.stored import Stored

__all__ = ["Enclosed"]


class Enclosed:
    """What the uncompressed content of a source encloses, as stored bytes of their own.

    Parameters
    ----------
    encoding
        The content is text in this encoding, of which its UTF-8 form is given; None: the content itself.
    skip
        Bytes of a byte order mark.
    """

    path = None
    size = None

    def __init__(self, source: Source, encoding: str | None = None, skip: int = 0) -> None:
        self._source = source
        self._encoding = encoding
        self._skip = skip

    @property
    def name(self) -> str:
        """The source's name."""
        return self._source.name

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the enclosed bytes from their start."""
        with self._source.open() as stream:
            yield stream if self._encoding is None else self._text(stream)

    def _text(self, stream: BinaryIO) -> BinaryIO:
        stream.read(self._skip)
        return cast(BinaryIO, _Transcoded(stream, self._encoding or "utf-8"))

    def beside(self, filename: str) -> Stored | None:
        """Return nothing: the source's own neighbours are asked of the source."""
        return None

    def local(self, progress: Progress | None = None) -> Enclosed:
        """Return the same with the source's bytes on this machine."""
        near = self._source.local(progress)
        return self if near is self._source else Enclosed(near, self._encoding, self._skip)

    def stamp(self) -> tuple[int, ...] | None:
        """Return what changes when the source's bytes do."""
        return self._source.stamp()


class _Transcoded:
    """A forward stream of UTF-8, made of one in another encoding; what cannot be decoded becomes U+FFFD."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._left = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while len(self._left) < size and not self._ended:
            block = self._stream.read(1 << 20)
            self._ended = not block
            self._left += self._decoder.decode(block, final=not block).encode("utf-8", errors="replace")
        out, self._left = self._left[:size], self._left[size:]
        return out

    def readinto(self, buffer: bytearray | memoryview) -> int:
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def readable(self) -> bool:
        return True
