"""Where stored bytes lie: on disk, in memory, in a temporary copy, or behind a URL.

Each kind has a ``name`` for messages, opens its bytes as they are stored (compressed ones stay so), and says
what lies beside it under another name.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast
from weakref import finalize

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.progress import Progress

__all__ = ["IN_MEMORY_BYTES", "MAX_COPY_BYTES", "Copied", "InMemory", "OnDisk", "Stored", "copy_of"]

IN_MEMORY_BYTES = 4 << 20
"""Copies up to this size stay in memory; larger ones go to a temporary file."""

MAX_COPY_BYTES = 64 << 30
"""Refuse to copy a stream that is longer than this."""

_BLOCK = 1 << 20


class Stored(Protocol):
    """Stored bytes of one file."""

    @property
    def name(self) -> str:
        """Label for messages and for ``meta["sources"]``."""
        ...

    @property
    def path(self) -> Path | None:
        """File that can be opened and mapped; None when there is none."""
        ...

    @property
    def size(self) -> int | None:
        """Bytes as stored, None unknown."""
        ...

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes from their start."""
        ...

    def beside(self, filename: str) -> Stored | None:
        """Return the file of that name in the same folder; None when there is none."""
        ...

    def local(self, progress: Progress | None = None) -> Stored:
        """Return the same bytes where they can be read at any place, again and later: here."""
        ...

    def stamp(self) -> tuple[int, ...] | None:
        """Return what changes when the bytes do; None when they are gone."""
        ...


class OnDisk:
    """A file on disk; its bytes are its own business, and are read when somebody wants them."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(fspath(path))

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def size(self) -> int:
        """Bytes now."""
        return self.path.stat().st_size

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file.

        Raises
        ------
        TraceFormatError
            When it is not there, or may not be read.
        """
        try:
            stream = self.path.open("rb")
        except FileNotFoundError:
            raise TraceFormatError("no such file", path=self.path, hint="Check the path") from None
        except PermissionError:
            raise TraceFormatError(
                "the file may not be read", path=self.path, hint="Check its permissions"
            ) from None
        with stream:
            yield stream

    def beside(self, filename: str) -> OnDisk | None:
        """Return the file of that name in the same folder."""
        other = self.path.with_name(filename)
        return OnDisk(other) if other.is_file() else None

    def local(self, progress: Progress | None = None) -> OnDisk:
        """Return itself."""
        return self

    def stamp(self) -> tuple[int, ...] | None:
        """Return its size and when it was changed."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_size, status.st_mtime_ns


class InMemory:
    """Bytes in memory; the name is only a label.

    Parameters
    ----------
    origin
        What they are a copy of.
    """

    path = None

    def __init__(self, name: str, data: bytes, origin: Stored | None = None) -> None:
        self.name = name
        self._data = data
        self._origin = origin

    @property
    def size(self) -> int:
        """Bytes in all."""
        return len(self._data)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes, without copying them."""
        yield io.BytesIO(self._data)

    def beside(self, filename: str) -> Stored | None:
        """Return what lies beside the original; nothing lies beside bytes that are no copy."""
        return None if self._origin is None else self._origin.beside(filename)

    def local(self, progress: Progress | None = None) -> InMemory:
        """Return itself."""
        return self

    def stamp(self) -> tuple[int, ...]:
        """They never change."""
        return ()


class Copied:
    """A copy in a temporary file without a name: it is gone when nobody holds this object any more.

    Parameters
    ----------
    origin
        Where the bytes can be had again. Another process, which cannot reach the copy, takes them from there.
    """

    def __init__(self, name: str, file: BinaryIO, origin: Stored | None = None) -> None:
        file.flush()
        self.name = name
        self.size = file.seek(0, io.SEEK_END)
        self._file = file
        self._origin = origin
        finalize(self, file.close)

    @property
    def path(self) -> Path:
        """The system's own name of the open file: opened by it, it has a position of its own."""
        return Path(f"/proc/self/fd/{self._file.fileno()}")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the copy."""
        with self.path.open("rb") as stream:
            yield stream

    def beside(self, filename: str) -> Stored | None:
        """Return what lies beside the original."""
        return None if self._origin is None else self._origin.beside(filename)

    def local(self, progress: Progress | None = None) -> Copied:
        """Return itself."""
        return self

    def stamp(self) -> tuple[int, ...]:
        """It never changes."""
        return ()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is not None:
            return _same, (self._origin,)
        if self.size > MAX_COPY_BYTES >> 5:
            raise TraceFormatError(
                "too large to be sent to another process",
                path=self.name,
                expected=f"at most {MAX_COPY_BYTES >> 5} bytes",
                found=f"{self.size} bytes",
                hint="Load it from a path or URL that the other process can reach",
            )
        with self.open() as stream:
            return InMemory, (self.name, stream.read())


def _same(stored: Stored) -> Stored:
    return stored


def copy_of(
    name: str,
    read: Callable[[int], bytes],
    *,
    size: int | None = None,
    origin: Stored | None = None,
    progress: Progress | None = None,
) -> InMemory | Copied:
    """Read a stream to its end and keep what it held: small content in memory, large in a temporary file.

    Parameters
    ----------
    read
        Returns up to so many next bytes, and none at the end.
    size
        How many are to be expected, None unknown.

    Raises
    ------
    TraceFormatError
        When it is longer than `MAX_COPY_BYTES`, or the place for temporary files has too little room.
    """
    held = io.BytesIO()
    done = 0
    with ExitStack() as undo:
        into: BinaryIO = held
        while block := read(_BLOCK):
            done += len(block)
            if done > MAX_COPY_BYTES:
                raise TraceFormatError(
                    "the stream is too long to be copied",
                    path=name,
                    expected=f"at most {MAX_COPY_BYTES} bytes",
                    found="more",
                    hint="Save it to a file, and load that",
                )
            try:
                if into is held and max(done, size or 0) > IN_MEMORY_BYTES:
                    into = cast(BinaryIO, tempfile.TemporaryFile(prefix="torchtrt_viz."))  # noqa: SIM115
                    undo.callback(into.close)
                    into.write(held.getbuffer())
                into.write(block)
                into.flush()  # a full disk is noticed here
            except OSError as error:
                raise TraceFormatError(
                    f"no room for a temporary copy in {tempfile.gettempdir()}",
                    path=name,
                    expected="room for all of its bytes" if size is None else f"room for {size} bytes",
                    found=error.strerror or str(error),
                    hint="Set TMPDIR to a folder with more room, or save it to a file and load that",
                ) from error
            if progress is not None:
                progress(done, size)
        undo.pop_all()
    return InMemory(name, held.getvalue(), origin) if into is held else Copied(name, into, origin)
