"""Files and folders behind URLs, read through fsspec (an optional dependency).

Messages and ``meta`` show a URL without its password and without its query, which may hold a signature.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast
from weakref import ref

from torchtrt_viz.errors import MissingDependencyError, TraceFormatError
from torchtrt_viz.formats.io.progress import Progress
from torchtrt_viz.formats.io.stored import Copied, InMemory, Stored, copy_of

__all__ = ["MissingProtocolError", "Remote", "open_url"]

_SECRET = re.compile(r"(?:(?<=://)[^/@?#\s]*|[^/\s@:]+:[^/\s@]*)@|(?<=[^/:\s])[?#][^:\s'\"]*")
_SMALL_BLOCK, _LARGE_BLOCK = 1 << 18, 8 << 20


class MissingProtocolError(MissingDependencyError):
    """A URL's protocol is read through a package that is not installed."""

    def __init__(self, protocol: str, package: str, url: str, said: str) -> None:
        self.package = package
        self.extra = "remote"
        ImportError.__init__(
            self,
            f"{url}: {package} is needed to read {protocol}:// and is not installed ({said}): "
            f"pip install {package}",
        )


def open_url(url: str) -> Remote:
    """Find what a URL names.

    Raises
    ------
    MissingDependencyError
        Without fsspec, or without the package of the protocol.
    TraceFormatError
        When nothing is there, or it cannot be reached.
    """
    label = _label(url)
    protocol = url.split("://", 1)[0].split("::")[0].lower()
    try:
        from fsspec.core import url_to_fs  # an optional dependency
    except ImportError as error:
        raise MissingDependencyError("fsspec", "remote", f"read {protocol}:// URLs") from error
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        raise MissingProtocolError(protocol, _package(protocol, error), label, str(error)) from error
    except ValueError as error:
        raise TraceFormatError(
            "not a URL that can be read",
            path=label,
            expected="a protocol that fsspec knows",
            found=_SECRET.sub("", str(error).replace(url, label)),
            hint="Check the URL, or save the content to a file and load that",
        ) from error
    except Exception as error:  # every protocol raises errors of its own
        raise _unreachable(label, url, error) from error
    with _reading(label, url):
        return Remote(fs, path, label, fs.info(path))


def _package(protocol: str, error: ImportError) -> str:
    """Name the package that a protocol wants: its own, or what the module that serves it could not import."""
    from fsspec.registry import known_implementations

    module = str(known_implementations.get(protocol, {}).get("class", protocol)).split(".")[0]
    cause = error.__cause__ or error.__context__
    missing = cause.name if isinstance(cause, ImportError) else None
    return missing.split(".")[0] if module == "fsspec" and missing else module


def _label(url: str) -> str:
    """Return the URL as it may be shown: no user, no password, no query."""
    return url if url.startswith("github://") else _SECRET.sub("", url)  # there it is the repository


def _unreachable(label: str, url: str, error: Exception) -> TraceFormatError:
    if isinstance(error, FileNotFoundError):
        return TraceFormatError("no such file or folder", path=label, hint="Check the URL")
    return TraceFormatError(
        "the URL cannot be read",
        path=label,
        found=f"{type(error).__name__}: {_SECRET.sub('', str(error).replace(url, label))}"[:400],
        hint="Check the URL, the network, and the credentials that fsspec is configured with",
    )


@contextmanager
def _reading(label: str, url: str) -> Iterator[None]:
    """Make an error about the URL of whatever its protocol raises."""
    try:
        yield
    except (TraceFormatError, MissingDependencyError, GeneratorExit):
        raise
    except ImportError as error:
        raise MissingProtocolError(
            label.split("://")[0], error.name or "its package", label, str(error)
        ) from error
    except Exception as error:
        raise _unreachable(label, url, error) from error


class Remote:
    """A file or folder of a file system that fsspec knows.

    Looking at the first bytes costs one small request. Who wants more takes `local`, a copy of the bytes,
    which is shared as long as somebody holds it.
    """

    path = None

    def __init__(self, fs: Any, place: str, name: str, info: dict[str, Any]) -> None:
        self.name = name
        self.is_folder = info.get("type") == "directory"
        size = info.get("size")
        self.size: int | None = size if isinstance(size, int) else None
        self._fs = fs
        self._place = place
        self._copy: ref[InMemory | Copied] | None = None

    def _kept(self) -> InMemory | Copied | None:
        return None if self._copy is None else self._copy()

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the copy if there is one, else the remote file."""
        kept = self._kept()
        if kept is not None:
            with kept.open() as stream:
                yield stream
            return
        with self._opened(_SMALL_BLOCK) as remote:
            yield cast(BinaryIO, _Guarded(remote, self))

    @contextmanager
    def _opened(self, block: int) -> Iterator[Any]:
        with _reading(self.name, self._place):
            stream = self._fs.open(self._place, "rb", block_size=block)
        try:
            yield stream
        finally:
            stream.close()

    def reading(self) -> Any:
        """Return a context in which what the protocol raises becomes an error about this URL."""
        return _reading(self.name, self._place)

    def local(self, progress: Progress | None = None) -> InMemory | Copied:
        """Return a copy of the bytes on this machine; it outlives the remote file."""
        kept = self._kept()
        if kept is None:
            with self._opened(_LARGE_BLOCK) as stream:
                kept = copy_of(
                    self.name, _Guarded(stream, self).read, size=self.size, origin=self, progress=progress
                )
            self._copy = ref(kept)
        return kept

    def beside(self, filename: str) -> Stored | None:
        """Return the file of that name in the same folder."""
        place = posixpath.join(posixpath.dirname(self._place), filename)
        name = posixpath.join(posixpath.dirname(self.name), filename)
        try:
            info = self._fs.info(place)
        except Exception:  # not there, or not to be seen: protocols differ in what they say
            return None
        found = Remote(self._fs, place, name, info)
        return None if found.is_folder else found

    def entries(self) -> list[Remote]:
        """Return what lies in the folder, in the order of the names."""
        with self.reading():
            listed = self._fs.ls(self._place, detail=True)
        out = {}
        own = self._place.rstrip("/")
        for info in listed:
            place = str(info["name"])
            base = posixpath.basename(place.rstrip("/"))
            if base and place.rstrip("/") != own:  # object stores list a folder's own marker
                out[base] = Remote(self._fs, place, f"{self.name.rstrip('/')}/{base}", info)
        return [out[base] for base in sorted(out)]

    def stamp(self) -> tuple[int, ...]:
        """Whether it has changed is not asked: what is read later is read from a copy."""
        return ()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_copy": None}


class _Guarded:
    """A remote stream whose errors name the URL."""

    def __init__(self, stream: Any, remote: Remote) -> None:
        self._stream = stream
        self._remote = remote

    def read(self, size: int = -1) -> bytes:
        with self._remote.reading():
            return cast(bytes, self._stream.read(size))

    def seek(self, offset: int, whence: int = 0) -> int:
        with self._remote.reading():
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Closed by who opened it."""
