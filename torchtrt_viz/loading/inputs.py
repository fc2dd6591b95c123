"""What a caller names: paths, URLs, open files and bytes, each as files to be read.

Open files and bytes are kept as they are now: nobody can change or close them afterwards.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.formats.io.progress import Progress
from torchtrt_viz.formats.io.remote import open_url
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.stored import InMemory, Stored, copy_of
from torchtrt_viz.loading.walk import MAX_FILES, File, walk, walk_remote

__all__ = ["Input", "Named", "Readable", "open_inputs", "open_record"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)")
_FILE_URL = re.compile(r"(?:file|local)://(?:localhost(?=/))?(?!.*::)", re.IGNORECASE)
_WANTED = (
    "a path, a URL, a file opened in binary mode, the bytes of a file (bytes, bytearray or memoryview), "
    "or a list of those"
)


class Readable(Protocol):
    """A file object that is open in binary mode."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many next bytes, none at the end."""
        ...


Input = str | PathLike[str] | bytes | bytearray | memoryview | Readable
"""One thing that `load` reads."""


@dataclass(frozen=True)
class Named:
    """What the caller named.

    Attributes
    ----------
    labels
        A label for each thing that was named.
    files
        Every file: those named, and those below the folders named.
    what
        "file" for one file named by itself, "folder" for one folder, "several" for a list of several.
    """

    labels: tuple[str, ...]
    files: tuple[File, ...]
    what: str

    @property
    def one_file(self) -> bool:
        """Whether a single file was named, by itself or in a list."""
        return len(self.labels) == 1 and self.what != "folder"


def open_inputs(given: Input | Iterable[Input], progress: Progress | None = None) -> Named:
    """Find everything that the caller named.

    Raises
    ------
    OptionError
        For what can be no input: another type, text instead of bytes, an empty list.
    TraceFormatError
        For a path or URL where nothing is, and a folder or stream that cannot be read.
    MissingDependencyError
        For a URL whose protocol needs a package that is not installed.
    """
    if _is_input(given):
        label, files, folder = _open(given, "", (), progress)
        if not folder:  # one file: what lies behind a URL is fetched at once
            files = [File(file.name, file.source.local(progress)) for file in files]
        return Named((label,), tuple(files), "folder" if folder else "file")
    if isinstance(given, (Mapping, int, float)) or not isinstance(given, Iterable):
        raise OptionError("path_or_paths", _shown(given), _WANTED)
    labels: list[str] = []
    found: list[File] = []
    folders = False
    for number, item in enumerate(given, start=1):
        if number > MAX_FILES or not _is_input(item):
            raise OptionError(f"path_or_paths[{number - 1}]", _shown(item), _WANTED)
        label, files, folder = _open(item, f" {number}", labels, progress)
        labels.append(label)
        found += files
        folders |= folder
    if not labels:
        raise OptionError("path_or_paths", [], "name at least one file or folder")
    return Named(tuple(labels), tuple(found), "folder" if folders and len(labels) == 1 else "several")


def open_record(etrecord: Input | None) -> str | PathLike[str] | Source | None:
    """Return the ETRecord that the caller named: a path as it is, anything else opened."""
    if etrecord is None or (_is_path(etrecord) and not _names_url(etrecord)):
        return etrecord  # type: ignore[return-value]
    if not _is_input(etrecord):
        raise OptionError("etrecord", _shown(etrecord), _WANTED.rpartition(",")[0])
    return open_inputs(etrecord).files[0].source


def _is_path(item: object) -> bool:
    return isinstance(item, (str, PathLike))


def _is_input(item: object) -> bool:
    return _is_path(item) or isinstance(item, (bytes, bytearray, memoryview)) or hasattr(item, "read")


def _names_url(path: Any) -> bool:
    """Tell a URL (``s3://bucket/x``, ``zip::memory://x.zip``) from a path."""
    return _URL.match(str(path)) is not None and not Path(path).exists()


def _local_path(url: str) -> Path | None:
    """The path that a ``file://`` URL means; None for any other URL."""
    found = _FILE_URL.match(url)
    if found is None:
        return None
    plain = Path(url[found.end() :])
    return plain if plain.exists() else Path(unquote(url[found.end() :]))


def _shown(item: object) -> str:
    text = repr(item)
    return f"{type(item).__name__} {text if len(text) < 60 else text[:56] + ' ...'}"


def _open(
    item: Any, number: str, taken: Sequence[str], progress: Progress | None
) -> tuple[str, list[File], bool]:
    """Return the label, the files, and whether it is a folder; what has no name of its own gets a number."""
    if _is_path(item):
        return _open_path(item)
    if isinstance(item, (bytes, bytearray, memoryview)):
        # bytes cannot change; a buffer that can is copied, since details of events are read from it later
        stored: Stored = InMemory(f"<bytes{number}>", item if isinstance(item, bytes) else bytes(item))
    else:
        named = getattr(item, "name", None)
        name = named if isinstance(named, str) and named else f"<file{number}>"
        stored = _copied(item, f"{name} #{number.strip()}" if name in taken else name, progress)
    return stored.name, [_single(Source(stored))], False


def _single(source: Source) -> File:
    return File(source.filename, source)


def _open_path(item: str | PathLike[str]) -> tuple[str, list[File], bool]:
    try:
        text = fsdecode(item)
    except Exception as error:  # an object that promises a path and has none
        raise OptionError("path_or_paths", _shown(item), _WANTED) from error
    path = Path(text)
    if _names_url(text):
        local = _local_path(text)
        if local is None:
            # reads through fsspec, an optional dependency

            remote = open_url(text)
            if remote.is_folder:
                return remote.name, list(walk_remote(remote)), True
            return remote.name, [_single(Source(remote))], False
        path = local
    if path.is_dir():
        return str(path), list(walk(path)), True
    if not path.exists():
        raise TraceFormatError("no such file or folder", path=path, hint="Check the path")
    if path.is_fifo():  # can be read once only
        with path.open("rb") as stream:
            return str(path), [_single(Source(copy_of(str(path), stream.read)))], False
    if not path.is_file():
        raise TraceFormatError(
            "neither a file nor a folder", path=path, expected=_WANTED, hint="Copy what it gives to a file"
        )
    return str(path), [_single(Source(path))], False


def _copied(file: Any, name: str, progress: Progress | None) -> Stored:
    """Take what a file object holds from its position on; it stays open."""
    remedy = "a file opened in binary mode: open(path, 'rb'), or its path"

    def read(size: int) -> bytes:
        try:
            block = file.read(size)
        except TraceFormatError:
            raise
        except Exception as error:  # whatever the object's maker raises
            raise TraceFormatError(
                "the file object cannot be read",
                path=name,
                expected="an object that is open for reading",
                found=f"{type(error).__name__}: {error}",
                hint="Open it again, or give its path",
            ) from error
        if isinstance(block, str):
            raise OptionError("path_or_paths", f"{name}, opened as text", remedy)
        if block is None:
            raise TraceFormatError(
                "the file object has nothing to give now", path=name, hint="Open it in blocking mode"
            )
        if not isinstance(block, (bytes, bytearray, memoryview)):
            raise OptionError("path_or_paths", f"{name}, whose read() gives {_shown(block)}", remedy)
        return bytes(block)

    if isinstance(file, io.TextIOBase):
        raise OptionError("path_or_paths", f"{name}, opened as text", remedy)
    return copy_of(name, read, progress=progress)
