"""From what a caller names to its data, in stages that each hand plain values to the next.

``open_inputs`` finds the files, ``identify`` says what each is, ``group`` which belong together, and
``put_together`` reads them. One trace file by itself, and the folder of a saved capture, need no more than
to be read.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats import FORMATS
from torchtrt_viz.formats.capture.document import is_document
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.progress import Progress, WhereSeen, watching
from torchtrt_viz.formats.io.source import DamagedStreamError, Source, archive_kind
from torchtrt_viz.loading.capture_folder import load_capture
from torchtrt_viz.loading.collection import put_together
from torchtrt_viz.loading.graph_captures import as_captures
from torchtrt_viz.loading.grouping import group
from torchtrt_viz.loading.identify import identify
from torchtrt_viz.loading.inputs import Input, Named, open_inputs, open_record
from torchtrt_viz.loading.merged_ranks import session_of
from torchtrt_viz.loading.rank_files import RankFile, recordings
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.loading.saved import load_saved, saved_document
from torchtrt_viz.loading.unwrapping import unwrapped
from torchtrt_viz.loading.with_graphs import with_graphs
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["load_data"]

_CAPTURES = "traces of graphs' captures, or a folder of them; False to join none"


def load_data(
    path_or_paths: Input | Iterable[Input],
    *,
    format: str | None = None,
    etrecord: Input | None = None,
    strict: bool = False,
    progress: Progress | WhereSeen | bool | None = None,
    engine: str | None = None,
    graphs: Input | Iterable[Input] | bool | None = None,
) -> TraceData | SessionData:
    """Read what is there; parameters and errors are those of :func:`torchtrt_viz.load`.

    Other than there, nothing is shown by default.
    """
    if format is not None and format not in FORMATS:
        raise OptionError("format", format, f"one of {', '.join(FORMATS)}")
    if engine not in (None, "dask"):
        raise OptionError("engine", engine, "'dask' or None")
    with watching(progress) as watch:
        named = open_inputs(path_or_paths, watch)
        options = LoadOptions(
            strict=strict, etrecord=open_record(etrecord), progress=watch, graphs=graphs is not False
        )
        by_hand = [] if graphs is None or isinstance(graphs, bool) else _captures(graphs, options)
        document = _capture(named) if format is None and engine is None else None
        if document is not None:
            return load_capture(document, options)
        saved = saved_document(named) if format is None else None
        if saved is not None:
            return load_saved(saved, named, options, engine)
        if named.what == "file" and engine is None:
            source = named.files[0].source
            if format is not None or not _is_archive(source):
                trace = read_source(source, options, format)
                session = session_of(trace, list(named.labels), options)
                return session or with_graphs(trace, recordings(by_hand, options), options)
        found = group(identify(named.files, format))
        return put_together(found, named, options, engine, by_hand)


def _captures(named: Input | Iterable[Input], options: LoadOptions) -> list[RankFile]:
    """Return the recordings of captures that the caller named: every trace among the files is one."""
    try:
        files = open_inputs(named).files
    except OptionError as error:
        raise OptionError("graphs", named, _CAPTURES) from error
    found = group(identify(files, None))
    out = as_captures((rank for rank in found.ranks if rank.state != "missing"), found.others)
    if not out:
        raise OptionError("graphs", named, _CAPTURES)
    options.warnings.extend(found.notes)
    return out


def _is_archive(source: Source) -> bool:
    """Whether a file, or what it needlessly wraps, is an archive; told with one opening in the usual case."""
    try:
        look = source.look()
    except DamagedStreamError:  # compressed, and damaged from its start
        return False
    inner, _ = unwrapped(source, look)
    return (look.archive if inner is source else archive_kind(inner)) is not None


def _capture(named: Named) -> Source | None:
    """Return the document of the saved capture whose folder, or list of it alone, was named; else None."""
    if len(named.labels) != 1 or named.what == "file":
        return None
    depth = 1 if named.what == "folder" else 0
    beside = (file.source for file in named.files if file.name.count("/") == depth)
    return next((source for source in beside if is_document(source)), None)
