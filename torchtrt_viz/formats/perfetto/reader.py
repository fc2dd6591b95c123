"""Perfetto protobuf traces: track events with everything that goes with them.

Read are slices, instants, counters (integer, double, incremental, and values on other events), flows, debug
annotations, process, thread, custom and counter tracks, interned strings, defaults and incremental state of
each sequence, relative and absolute times in every clock that snapshots relate, and compressed packets. What
other data sources recorded (scheduler, heap, GPU driver, ...) is counted in the warnings and not read.

The message definitions are those of ``protos/perfetto/trace`` in google/perfetto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.formats.perfetto.sniff import looks_like_perfetto

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "perfetto"


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether the content is a Perfetto protobuf trace."""
    return looks_like_perfetto(head)


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read a Perfetto trace.

    Raises
    ------
    TraceFormatError
        When no packet of it is whole.
    """
    # slow to import: it needs numpy
    from torchtrt_viz.formats.perfetto.frames import read_trace

    return read_trace(source, options)
