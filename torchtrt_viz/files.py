"""`load`: files in, a `Trace` or a `Session` out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchtrt_viz.formats.io.progress import WHERE_SEEN
from torchtrt_viz.loading.load import load_data
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.session import Session
from torchtrt_viz.trace import Trace

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.progress import Progress
    from torchtrt_viz.loading.inputs import Input

__all__ = ["load"]


def load(
    path_or_paths: Input | Iterable[Input],
    *,
    format: str | None = None,
    etrecord: Input | None = None,
    strict: bool = False,
    progress: Progress | bool | None = None,
    engine: str | None = None,
    graphs: Input | Iterable[Input] | bool | None = None,
) -> Trace | Session:
    """Read a trace, a set of files that belong together, or a session of many ranks.

    Parameters
    ----------
    path_or_paths
        What to read, or a list of such things. Each may be a single file (plain, gzip or zstandard), an
        archive or a folder; what it is, is told by its content and not by its name. Given as

        - a path: ``str`` or ``os.PathLike``. Details of events are read from the file when they are asked
          for, so it should stay where it is;
        - the content: ``bytes`` (kept, not copied), ``bytearray`` or ``memoryview`` (copied);
        - a file object opened in binary mode, seekable or not. It is read from its current position to its
          end and stays open; nothing is read from it afterwards;
        - a URL that fsspec knows (``s3://``, ``https://``, ``memory://``, ``zip::...``, ...; needs the extra
          ``remote``): a file, or a folder with everything below it. Messages and ``meta`` show it without
          its user, password and query.

        The content of file objects and URLs is copied, up to 4 MiB into memory and beyond that (at most
        64 GiB) into a temporary file without a name, which is gone as soon as the trace is, or the process.
        A session copies a rank when it reads it, not before.
    format
        Skip the sniffing: one of :data:`torchtrt_viz.formats.FORMATS`.
    etrecord
        ETRecord of the program that wrote an ETDump, in any of these forms: adds operator types, modules and
        source lines.
    strict
        Raise at the first damage. By default what is whole is loaded, and ``trace.meta["warnings"]`` says
        what was repaired or lost.
    progress
        By default long loads show a bar in a notebook and a line (on stderr) in a terminal. False: nothing;
        True: also where stderr is no terminal; or a function of (bytes read, bytes in all or None).
    engine
        "dask" loads a session lazily, one task per rank, on the current ``distributed`` client.
    graphs
        Recordings of the captures of CUDA or HIP graphs, as paths, a folder, or anything else that can be
        read: the kernels that launches of graphs ran get the operators of their capture
        (:meth:`Trace.graphs`). None or True: those among the files that are loaded, told by their
        folder (``capture_traces``), name or content. False: join nothing.

    Returns
    -------
    Trace
        For one capture of one process.
    Session
        For a folder, archive or list that holds several ranks, and for a file into which several were merged.
        A recording that is there twice counts once; what is left out for that, and what lies beside the
        traces and is none, is in ``session.meta["warnings"]`` (``trace.meta`` where one trace is left).

    Raises
    ------
    TraceFormatError
        When nothing can be read; it names the file, the byte, what was expected, what the file is where that
        is known, and what to do.
    OptionError
        For an unknown ``format`` or ``engine``, and for what cannot be read at all: another type, a file
        opened as text.
    MissingDependencyError
        For a URL without fsspec, or without the package that its protocol needs; it names the pip command.
    """
    data = load_data(
        path_or_paths,
        format=format,
        etrecord=etrecord,
        strict=strict,
        progress=WHERE_SEEN if progress is None else progress,
        engine=engine,
        graphs=graphs,
    )
    return Session.of(data) if isinstance(data, SessionData) else Trace.of(data)
