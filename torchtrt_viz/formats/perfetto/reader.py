"""Perfetto protobuf traces: track events with everything that goes with them, and the work of GPUs.

Read are slices, instants, counters (integer, double, incremental, and values on other events), flows, debug
annotations, process, thread, custom and counter tracks, interned strings, defaults and incremental state of
each sequence, relative and absolute times in every clock that snapshots relate, and compressed packets.

Of GPUs, render stages (``GpuRenderStageEvent``) are spans of domain gpu on the stream of their hardware
queue, with the most exact name that there is: the event's own, the compute kernel's, the stage's; one
without a duration is an instant. ``correlation`` and flows lead from the call that submitted them, where the
trace says it (``gpu_correlation``, ``vkQueueSubmit``). Counters (``GpuCounterEvent``) keep time and value as
sampled, which by Perfetto's convention is the value of the time since the sample before; units are those of
the descriptor. The GPU's memory and frequency are counters too, its log is instants.

Perfetto does not say where a slice ran. Categories and the names of tracks, threads and processes tell host
from GPU; where neither does, the warning ``domain_unsaid`` has the number of slices that were taken as the
host's. What other data sources recorded (scheduler, heap, ...) is not read: the warning ``unread_packets``
has kinds and numbers, and ``trace.meta["accounting"]`` what became of every packet. A protobuf file of
something else is an error that names it where that can be told.

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
        When no packet of it is whole, and for a protobuf file of something else.
    """
    # slow to import: it needs numpy
    from torchtrt_viz.formats.perfetto.frames import read_trace

    return read_trace(source, options)
