"""Traces as files that Perfetto opens (ui.perfetto.dev, trace_processor, chrome://tracing)."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.io.whole_file import write_atomically

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMATS", "write_perfetto"]

FORMATS = ("protobuf", "json")


def write_perfetto(
    trace: TraceData,
    path: str | PathLike[str],
    *,
    format: str | None = None,
    args: bool = False,
) -> Path:
    """Write a trace as a Perfetto trace.

    Host and GPU work are on separate processes' tracks, with the names that the trace gives them. Spans that
    cut into one another on one track, which Perfetto would drop or draw wrongly, go to a second lane of it.
    Modeled times are on lanes of their own that say so. Sums over calls (``timing`` "aggregate") are not
    drawn: they have no place on a time axis, and are an entry of the trace's metadata. So is what Perfetto
    has no field for, so that ``load()`` gives back the spans that were written.

    Nothing of ``trace.meta`` is written but its clock and rank: traces carry environments and tokens.

    Parameters
    ----------
    trace
        The trace.
    path
        File to write. It is written beside it first and then renamed: no reader sees half of it.
    format
        "protobuf", or "json" (the trace-event format, which other tools read too: larger, and slower to
        load). By default "json" for names that end in .json, else "protobuf".
    args
        Write the details of every span as well. They are read from the source for that, and may hold what is
        not to be handed on.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    OptionError
        For an unknown format.
    OSError
        When the file cannot be written.
    """
    if format is None:
        format = "json" if fspath(path).endswith(".json") else "protobuf"
    if format not in FORMATS:
        raise OptionError("format", format, f"one of {', '.join(FORMATS)}")
    if format == "json":
        # slow to import: it needs numpy
        from torchtrt_viz.formats.perfetto.json_writer import write_json

        return write_atomically(path, lambda file: write_json(trace, file, args=args))
    # slow to import: it needs numpy
    from torchtrt_viz.formats.perfetto.protobuf_writer import write_protobuf

    return write_atomically(path, lambda file: write_protobuf(trace, file, args=args))
