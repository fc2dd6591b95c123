"""Python frames of a capture with stacks, without those of the notebook's kernel and of the capture itself.

With stacks on, everything is recorded: the loop that serves the notebook, its threads, and the code that
begins and ends the recording. The user asked for the cell only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest

if TYPE_CHECKING:
    from torchtrt_viz.trace import Trace

__all__ = ["without_own_frames"]

#: frames in which the code of a cell begins
_CELL = re.compile(r"(ipykernel_\d+[/\\]\d+\.py|<ipython-input-\d+-\w+>)\(\d+\): <module>$")
#: frames of threads that serve the notebook, whoever runs them
_KERNEL = re.compile(r"^(ipykernel|zmq|tornado|jupyter_client|IPython)/")
#: frames that begin and end a capture; inside the block there are none of them
_OWN = re.compile(r"^torchtrt_viz/(magic/|capture/|runtime/|captures\.py)")

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def without_own_frames(trace: Trace, length_ns: int) -> Trace:
    """Return the trace without Python frames that the cell did not cause.

    Parameters
    ----------
    length_ns
        Length of the block; it began at 0 on the trace's base.
    """
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.core.masks import among, names_matching

    spans = trace.spans
    python = among(spans["kind"], ("python",))
    if not python.any():
        return trace
    names = spans["name"]
    cell = python & names_matching(names, _CELL)
    start = spans["start_ns"].to_numpy(dtype=np.int64, na_value=0)
    end = start + spans["dur_ns"].to_numpy()
    parent = spans["parent"].to_numpy()
    root = _roots(parent)
    of_kernel = np.zeros(len(spans), bool)
    of_kernel[root[python & names_matching(names, _KERNEL)]] = True
    has_cell = np.zeros(len(spans), bool)
    has_cell[root[cell]] = True
    outside = (end <= 0) | (start >= length_ns)
    crossing = ((start < 0) | (end > length_ns)) & names_matching(names, _OWN)
    drop = python & (
        outside
        | crossing
        | _enclosing(parent, cell)
        | (of_kernel[root] & ~has_cell[root])
        | _under(parent, crossing)
    )
    keep = ~drop
    if keep.all():
        return trace
    above = nearest(parent, keep)
    depth = np.zeros(len(spans), np.int32)
    for row in np.argsort(spans["depth"].to_numpy(), kind="stable").tolist():
        if above[row] >= 0:
            depth[row] = depth[above[row]] + 1
    trace.spans = spans.assign(parent=above, depth=depth)
    return trace.select(keep)


def _roots(parent: Rows) -> Rows:
    """Return the outermost row around each row."""
    root = np.where(parent >= 0, parent, np.arange(len(parent)))
    while True:
        higher = root[root]
        if (higher == root).all():
            return root
        root = higher


def _enclosing(parent: Rows, rows: Mask) -> Mask:
    """Say for each row whether one of ``rows`` lies in it."""
    out = np.zeros(len(parent), bool)
    above = np.unique(parent[rows])
    while len(above := above[above >= 0]):
        above = above[~out[above]]
        out[above] = True
        above = np.unique(parent[above])
    return out


def _under(parent: Rows, rows: Mask) -> Mask:
    """Say for each row whether it lies in one of ``rows``."""
    found: Mask = nearest(parent, rows) >= 0
    return found
