"""How operators that were recovered for the kernels of a graph stand in the frames of a trace.

The launch of a CUDA (or HIP) graph runs kernels for which no operator ran on the host. What the capture of
the graph knows of them is added as rows of ``spans`` whose ``timing`` is modeled, on tracks of their own: a
root per launch and stream, below it the modules, ranges and operators of the capture, each from the first
start to the last end of its kernels. ``domain`` is gpu, because these are times of the GPU; no host time is
in them, and being modeled they are in no sum. ``self_ns`` is the sum of the durations of the kernels that are
a row's own. Rows that stand for one call of an operator share an ``external_id``, which nothing else has.

Flows tie them to what was recorded: `LAUNCH` from the launching call to the root, and one from the innermost
recovered row to each kernel, named after how the kernel was matched.
"""

from __future__ import annotations

__all__ = ["LAUNCH", "MATCHES", "kernel_flow"]

LAUNCH = "graph launch"
"""Name of the flow from the call that launches a graph to the root of what was recovered for it."""

MATCHES: tuple[str, ...] = ("exact", "ordered", "by_name")
"""How a kernel was matched, best first; a kernel without an operator has none."""


def kernel_flow(match: str) -> str:
    """Return the name of the flow from a recovered row to a kernel that was matched so."""
    return f"graph {match}"
