"""Operators recovered from the captures of graphs, as a trace holds them: who owns which replayed work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.core.masks import among
from torchtrt_viz.model.graph_rows import LAUNCH, MATCHES, kernel_flow
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Recovered", "recovered"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_INPUTS = {"spans": ("timing", "parent", "external_id"), "flows": ("name", "source", "target")}


@dataclass(frozen=True)
class Recovered:
    """What was recovered for the launches of graphs, each array with an entry per span.

    Attributes
    ----------
    rows
        Whether the span is one of the recovered ones; roots are not, they stand for launches.
    root
        Whether it stands for a launch.
    again
        Whether a recovered row is of a call that an earlier row is of: its work is on several streams.
    parent
        The recovered row around a recovered row; -1 elsewhere, and where that is the root.
    launch
        The launching call of a recovered row or root; -1 elsewhere, and where the call is not in the trace.
    owner
        The innermost recovered row of replayed work; -1 elsewhere.
    match
        How replayed work was matched (position in `MATCHES`); -1 elsewhere.
    """

    rows: Mask
    root: Mask
    again: Mask
    parent: Ints
    launch: Ints
    owner: Ints
    match: NDArray[np.int8]


def recovered(trace: TraceData) -> Recovered | None:
    """Return what was recovered from captures of graphs; None for a trace without any of it."""
    names = trace.flows["name"].cat.categories
    if LAUNCH not in names and not any(kernel_flow(match) in names for match in MATCHES):
        return None
    return kept(trace, "recovered", _INPUTS, lambda: _recovered(trace))


def _recovered(trace: TraceData) -> Recovered:
    size = len(trace.spans)
    modeled = among(trace.spans["timing"], ("modeled",))
    source, target = filled(trace.flows["source"]), filled(trace.flows["target"])
    root, begun = np.zeros(size, bool), np.full(size, -1, np.int64)
    of_launch = among(trace.flows["name"], (LAUNCH,)) & (target >= 0)
    root[target[of_launch]] = True
    begun[target[of_launch]] = source[of_launch]
    owner, match = np.full(size, -1, np.int64), np.full(size, -1, np.int8)
    owning = np.zeros(size, bool)
    for number, name in enumerate(MATCHES):
        mine = among(trace.flows["name"], (kernel_flow(name),)) & (source >= 0) & (target >= 0)
        owner[target[mine]] = source[mine]
        match[target[mine]] = number
        owning[source[mine]] = True
    above = trace.spans["parent"].to_numpy()
    top = nearest(above, root)
    rows = modeled & ~root & ((top >= 0) | owning)
    call = filled(trace.spans["external_id"])
    again = rows & (call > 0)
    again[np.flatnonzero(again)[np.unique(call[again], return_index=True)[1]]] = False
    parent = np.full(size, -1, np.int64)
    inside = rows & (above >= 0)
    parent[inside] = np.where(rows[above[inside]], above[inside], -1)
    launch = np.where(root, begun, np.where(rows & (top >= 0), begun[top], -1))
    parts = (rows, root & modeled, again, parent, launch, owner, match)
    for part in parts:
        part.flags.writeable = False  # several analyses look at the same
    return Recovered(*parts)
