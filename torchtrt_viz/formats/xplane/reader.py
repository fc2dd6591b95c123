"""XPlanes (``*.xplane.pb``) of ``jax.profiler`` and of TensorFlow's profiler, and of XLA on GPUs and TPUs.

An XSpace holds planes: hosts, GPUs, TPU cores. A plane holds lines (threads, streams, kinds of rows), a line
holds events. Read are all events of all planes:

- of hosts, threads with Python frames (kind python), ranges of XLA and of the program (annotation), steps,
  calls of the CUDA or HIP runtime (runtime), and operators that XLA ran on the CPU (operator);
- of devices, what lies on streams (GPU) and on the line "XLA Ops" (TPU). Lines that repeat or sum up others
  (Steps, XLA Modules, Framework Ops, Source code, ...) are modeled and in no sum. So are the operators that
  the events of a device name (the path in JAX's program, else the HLO operator): they are added as rows of
  their own, linked to their work, and are what ``operators()`` shows.

Times are picoseconds. A start and an end are rounded to the nearest nanosecond, so that what was nested or
in order stays so; ``trace.meta["accounting"]`` has the sum in ps and how much rounding changed it. Statistics
of an event and of its description are its arguments; of bytes, which hold whole programs, only the number.

The message definitions are those of ``xplane.proto`` of XLA, names of planes, lines and statistics those of
its ``xplane_schema.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.formats.io.foreign_protobuf import is_xspace

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "xplane"


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether the content is an XSpace."""
    return is_xspace(head, filename)


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read an XSpace.

    Raises
    ------
    TraceFormatError
        When it is none, or none of its planes holds an event; with ``options.strict`` also for any damage.
    """
    # slow to import: they need numpy and pandas
    from torchtrt_viz.formats.xplane.frames import read_space

    return read_space(source, options)
