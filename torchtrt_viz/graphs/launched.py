"""Launches of graphs in a replay, and the device work that each ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import outermost
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.links import GRAPH_LAUNCH, launches, of_graphs
from torchtrt_viz.analysis.core.masks import among, ends, ints, measured, names_matching, strings
from torchtrt_viz.graphs.batch import replayed
from torchtrt_viz.graphs.names import Names
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["GraphLaunch", "graph_launches", "launches_graphs"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GraphLaunch:
    """One launch of a graph.

    Attributes
    ----------
    row
        The launching call.
    pieces
        Rows of the device work that it ran, stream after stream, each in its order.
    streams
        Which of the launch's streams each piece ran on, counted from 0 in the order of ``pieces``.
    codes
        Name of each piece (`Names`).
    batch
        Batch size that a range around the launch states, None where none does.
    step
        Row of the range around the launch, the same for the launches of one step; -1 outside.
    """

    row: int
    pieces: Ints
    streams: Ints
    codes: Ints
    batch: int | None
    step: int

    @property
    def signature(self) -> tuple[bytes, bytes]:
        """Return what is equal for launches that ran the same work in the same order."""
        return self.codes.tobytes(), self.streams.astype(np.int16).tobytes()


def launches_graphs(trace: TraceData) -> bool:
    """Whether the recording has launches of graphs at all; looks at names only."""
    return any(GRAPH_LAUNCH.search(str(name)) for name in trace.spans["name"].cat.categories)


def graph_launches(trace: TraceData, names: Names, node: Ints | None = None) -> list[GraphLaunch]:
    """Return the launches of graphs that ran device work of the trace, in the order of their calls.

    Parameters
    ----------
    node
        For every span the number of its node in the graph, -1 unknown. Where all work of a launch has one,
        the nodes tell the order in which it was captured, whatever stream it ran on.
    """
    spans = trace.spans
    found = launches(trace)
    mine = np.flatnonzero(of_graphs(trace, found))
    if not len(mine):
        return []
    start = ints(spans["start_ns"])
    host, row, track = found.host[mine], found.work.row[mine], found.work.track[mine]
    order = np.lexsort((row, found.work.start[mine], track, host))
    host, row, track = host[order], row[order], track[order]
    codes = names.of_work(trace, row)
    bounds = np.append(np.flatnonzero(np.diff(host, prepend=-1)), len(host))
    steps, sizes = _steps(trace)
    out = []
    for begin, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        pieces, code, lane = row[begin:stop], codes[begin:stop], track[begin:stop]
        streams = np.cumsum(np.diff(lane, prepend=lane[0]) != 0)
        if node is not None and (node[pieces] >= 0).all():
            by_node = np.argsort(node[pieces], kind="stable")
            pieces, code, streams = pieces[by_node], code[by_node], np.zeros(len(pieces), np.int64)
        call = int(host[begin])
        step = int(steps[call])
        out.append(GraphLaunch(call, pieces, streams, code, sizes.get(call), step))
    return sorted(out, key=lambda launch: (int(start[launch.row]), launch.row))


def _steps(trace: TraceData) -> tuple[Ints, dict[int, int]]:
    """Return the range around each call that states a batch size, else the outermost, and the size."""
    spans = trace.spans
    host = among(spans["domain"], ("host",)) & measured(trace)
    ranges = host & among(spans["kind"], ("annotation", "step"))
    outer = np.flatnonzero(outermost(host_nesting(trace).parent, ranges))
    start, end, thread = ints(spans["start_ns"]), ends(trace), host_nesting(trace).thread
    calls = np.flatnonzero(names_matching(spans["name"], GRAPH_LAUNCH) & host)
    steps = np.full(len(spans), -1, np.int64)
    for row in outer.tolist():
        inside = calls[
            (start[calls] >= start[row]) & (start[calls] < end[row]) & (thread[calls] == thread[row])
        ]
        steps[inside] = row
    sizes: dict[int, int] = {}
    names = strings(spans["name"])
    parent = host_nesting(trace).parent
    known = {row: size for row in np.flatnonzero(ranges).tolist() if (size := replayed(str(names[row])))}
    for call in calls.tolist():
        row = int(parent[call])
        while row >= 0 and row not in known:
            row = int(parent[row])
        if row >= 0:
            sizes[call], steps[call] = known[row], row
    return steps, sizes
