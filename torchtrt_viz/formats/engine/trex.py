"""TREX files: layer information, layer times, timed inferences and metadata of a TensorRT engine, as JSON.

One file gives what it holds; load the folder to have all files of an engine joined
(:mod:`torchtrt_viz.formats.engine.file_set` describes the result).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.formats.engine.files import kind_of, told_by_name
from torchtrt_viz.formats.engine.trace import read_file

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "trex"

_OURS = ("graph", "profile", "readings", "timing", "metadata", "device")


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether the content is one of the JSON documents about a TensorRT engine."""
    return kind_of(head, filename) in _OURS


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read one file about an engine.

    Raises
    ------
    TraceFormatError
        When nothing of it is whole, or it is about no engine.
    """
    kind = kind_of(source.head(), source.filename)
    if kind is None:
        kind = told_by_name(source.filename) or "graph"
    return read_file(source, options, kind, FORMAT)
