"""`load`: files in, a `Trace` or a `Session` out."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from torchtrt_viz.loading.load import load_data
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.session import Session
from torchtrt_viz.trace import Trace

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import Progress

__all__ = ["load"]


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
        Skip the sniffing: one of :data:`torchtrt_viz.formats.FORMATS`.
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
    data = load_data(
        path_or_paths, format=format, etrecord=etrecord, strict=strict, progress=progress, engine=engine
    )
    return Session.of(data) if isinstance(data, SessionData) else Trace.of(data)
