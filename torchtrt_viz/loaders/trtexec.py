"""Logs of trtexec and of other TensorRT programs: layer tables, performance summary, inspector text.

:mod:`torchtrt_viz.loaders.trtexec_log` says what is recognised, :mod:`torchtrt_viz.loaders.engine_set`
describes the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.loaders.engine_files import kind_of
from torchtrt_viz.loaders.engine_trace import read_file

if TYPE_CHECKING:
    from torchtrt_viz.loaders.options import LoadOptions
    from torchtrt_viz.loaders.source import Source
    from torchtrt_viz.trace import Trace

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "trtexec"


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether the content is a log that says something about an engine."""
    return kind_of(head, filename) == "log"


def read(source: Source, options: LoadOptions) -> Trace:
    """Read a log.

    Raises
    ------
    TraceFormatError
        When it holds no layers, times or summary.
    """
    return read_file(source, options, "log", FORMAT)
