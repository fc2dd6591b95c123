"""Logs of trtexec and of other TensorRT programs: layer tables, performance summary, inspector text.

`torchtrt_viz.formats.engine.trtexec_log` says what is recognised, `torchtrt_viz.formats.engine.file_set`
describes the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.formats.engine.files import kind_of
from torchtrt_viz.formats.engine.trace import read_file

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "trtexec"


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether the content is a log that says something about an engine."""
    return kind_of(head, filename) == "log"


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read a log.

    Raises
    ------
    TraceFormatError
        When it holds no layers, times or summary.
    """
    return read_file(source, options, "log", FORMAT)
