"""Trees that Triton's Proton writes by default (``proton.start(..., data="tree")``): ``NAME.hatchet``.

A node is a scope, a Python frame or a kernel, with sums over all its executions: time on the device, how
often, the device, and what the program states (``flops8``, ``bytes``, ...). A span per node stands for the
sum: its ``timing`` is aggregate, so that it is nowhere on a time axis; ``self_ns`` is the node's own time,
``dur_ns`` that and the time of all nodes below it, and ``parent`` is the node above. Kernels are what has a
time of its own; scopes stand for operators. What Proton measured of its own work (below
``__proton_launch_metadata``) is modeled, and in no sum.

``kernels()``, ``operators()``, ``call_tree(value="gpu")`` and ``flame_graph(value="gpu")`` read the sums.
Chrome traces of Proton (``data="trace"``) are trace events, read with them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "proton"

_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{\s*\"(?:children|frame|metrics)\"\s*:")
_FRAME = re.compile(rb"\"frame\"\s*:\s*\{\s*\"(?:name|type)\"\s*:")
_DEEP = re.compile(rb"(?:\[\s*\{\s*\"children\"\s*:\s*){8}")


def sniff(head: bytes, filename: str) -> bool:
    """Tell a list of nodes with frames; of a deep tree only the nesting may be in sight."""
    return _BEGIN.match(head) is not None and (
        _FRAME.search(head) is not None or _DEEP.search(head) is not None
    )


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read a tree.

    Raises
    ------
    TraceFormatError
        When it is none, or none of its nodes has a time; with ``options.strict`` also for any damage.
    """
    # slow to import: they need numpy and pandas
    from torchtrt_viz.formats.proton.frames import read_tree

    return read_tree(source, options)
