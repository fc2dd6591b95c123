"""The front door for files: `load` tells the format by content and hands over to the module that reads it.

A loader is a module of this package with

- ``FORMAT``: the name that ``load(format=...)`` takes,
- ``sniff(head, filename) -> bool``: whether the first 64 KiB of the uncompressed content are of its format
  (the name may only settle what the content leaves open), and
- ``read(source, options) -> Trace``.

Folders, archives and lists of files go through :mod:`torchtrt_viz.loaders.collection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.loaders.kineto_sniff import is_kineto_header
from torchtrt_viz.loaders.options import LoadOptions, Progress
from torchtrt_viz.loaders.source import Source, archive_kind

if TYPE_CHECKING:
    from torchtrt_viz.session import Session
    from torchtrt_viz.trace import Trace

__all__ = ["FORMATS", "Loader", "formats", "load", "load_source", "loader_for", "sniff"]

#: Format names in the order in which they are asked; the first that knows the content reads it.
FORMATS: tuple[str, ...] = ("etdump", "perfetto", "torchtrt", "trex", "trtexec", "kineto")


class Loader(Protocol):
    """What a loader module offers."""

    FORMAT: str

    def sniff(self, head: bytes, filename: str) -> bool:
        """Tell whether this loader knows the content."""
        ...

    def read(self, source: Source, options: LoadOptions) -> Trace:
        """Read the source."""
        ...


def formats() -> tuple[str, ...]:
    """Names that ``load(format=...)`` takes."""
    return FORMATS


def loader_for(name: str) -> Loader:
    """Return the loader module of a format.

    Raises
    ------
    OptionError
        For a name that is no format.
    """
    if name not in FORMATS:
        raise OptionError("format", name, f"one of {', '.join(FORMATS)}")
    return cast(Loader, import_module(f"torchtrt_viz.loaders.{name}"))


def sniff(source: Source) -> str:
    """Tell the format of a single file by its content.

    Raises
    ------
    TraceFormatError
        For an empty file, and for content that no loader knows.
    """
    head = source.head()
    if not head:
        # only the name of a file about an engine says what an empty one would have held
        for name in ("torchtrt", "trex"):
            if loader_for(name).sniff(head, source.filename):
                return name
        raise TraceFormatError(
            "empty file",
            path=source.name,
            offset=0,
            expected="a trace",
            found="0 bytes",
            hint="The writer was probably stopped before it wrote anything: capture again",
        )
    if is_kineto_header(head):
        return "kineto"  # the usual case, told without importing what the other formats need
    for name in FORMATS:
        if loader_for(name).sniff(head, source.filename):
            return name
    raise TraceFormatError(
        "not a trace that this package knows",
        path=source.name,
        offset=0,
        expected="ETDump, trace-event JSON (Kineto, Chrome), Perfetto protobuf, TensorRT layer, profile "
        "or timing JSON, Torch-TensorRT traces, trtexec output, or an archive or folder of those",
        found=repr(head[:24]),
        hint="If it is one of them all the same, name it: load(path, format=...)",
    )


def load_source(source: Source, options: LoadOptions, format: str | None = None) -> Trace:
    """Read one file (or archive member) into a trace."""
    name = format or sniff(source)
    trace = loader_for(name).read(source, options)
    return trace


def load(
    path_or_paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    format: str | None = None,
    etrecord: str | PathLike[str] | None = None,
    strict: bool = False,
    progress: Progress | bool | None = None,
    engine: str | None = None,
) -> Trace | Session:
    """Read a trace, a set of files that belong together, or a session of many ranks.

    Parameters
    ----------
    path_or_paths
        A file (plain, gzip or zstandard), an archive, a folder, or several files. What it is, is told by
        its content and not by its name.
    format
        Skip the sniffing: one of :func:`formats`.
    etrecord
        ETRecord of the program that wrote an ETDump: adds operator types, modules and source lines.
    strict
        Raise at the first damage. By default what is whole is loaded, and ``trace.meta["warnings"]`` says
        what was repaired or lost.
    progress
        True shows a progress bar for long loads; or a function of (bytes read, bytes in all or None).
    engine
        "dask" loads a session lazily, one task per rank, on the current ``distributed`` client.

    Returns
    -------
    Trace
        For one capture of one process.
    Session
        For a folder, archive or list that holds several ranks.

    Raises
    ------
    TraceFormatError
        When nothing can be read; it names the file, the byte, what was expected, and what to do.
    OptionError
        For an unknown ``format`` or ``engine``.
    """
    from torchtrt_viz.loaders.progress import watching

    if format is not None and format not in FORMATS:
        raise OptionError("format", format, f"one of {', '.join(FORMATS)}")
    if engine not in (None, "dask"):
        raise OptionError("engine", engine, "'dask' or None")
    with watching(progress) as watch:
        options = LoadOptions(strict=strict, etrecord=etrecord, progress=watch)
        if isinstance(path_or_paths, (str, PathLike)):
            path = Path(path_or_paths)
            if not path.exists():
                raise TraceFormatError("no such file or folder", path=path, hint="Check the path")
            if engine is None and path.is_file():
                source = Source(path)
                if format is not None or archive_kind(source) is None:
                    return load_source(source, options, format)
            from torchtrt_viz.loaders.collection import load_collection

            return load_collection([path], options, format=format, engine=engine)
        from torchtrt_viz.loaders.collection import load_collection

        return load_collection([Path(p) for p in path_or_paths], options, format=format, engine=engine)


def __getattr__(name: str) -> Any:
    if name in FORMATS:
        return import_module(f"torchtrt_viz.loaders.{name}")
    raise AttributeError(name)
