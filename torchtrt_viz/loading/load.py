"""What a caller names, as data: one file, or several put together."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.formats import FORMATS
from torchtrt_viz.formats.io.options import LoadOptions, Progress
from torchtrt_viz.formats.io.progress import watching
from torchtrt_viz.formats.io.source import Source, archive_kind
from torchtrt_viz.loading.collection import load_collection
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["load_data"]


def load_data(
    path_or_paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    format: str | None = None,
    etrecord: str | PathLike[str] | None = None,
    strict: bool = False,
    progress: Progress | bool | None = None,
    engine: str | None = None,
) -> TraceData | SessionData:
    """Read what is there; parameters and errors are those of :func:`torchtrt_viz.load`."""
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
                    return read_source(source, options, format)
            return load_collection([path], options, format=format, engine=engine)
        return load_collection([Path(p) for p in path_or_paths], options, format=format, engine=engine)
