"""A thread's nested spans as one line: which of them was innermost at each time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.masks import ends, ints
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["innermost_line", "pieces_of"]

Ints = NDArray[np.int64]


def innermost_line(trace: TraceData, mask: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return times, and the row that is innermost from each time on (-1 none), of the spans of one track.

    Of spans that overlap without lying inside each other the later takes over.
    """
    spans = trace.spans
    start, end = ints(spans["start_ns"]), ends(trace)
    mask = mask & (end > start)
    rows = np.flatnonzero(mask)
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    above = nearest(spans["parent"].to_numpy(), mask)[rows]
    depth = spans["depth"].to_numpy()[rows].astype(np.int64)
    begin, stop = start[rows], end[rows].copy()
    order = np.lexsort((stop, begin, above))
    siblings = above[order][1:] == above[order][:-1]
    following = np.where(siblings, begin[order][1:], np.iinfo(np.int64).max)
    stop[order[:-1]] = np.minimum(stop[order[:-1]], following)
    whole = stop > begin
    rows, above, depth, begin, stop = rows[whole], above[whole], depth[whole], begin[whole], stop[whole]
    time = np.concatenate((stop, begin))
    opens = np.concatenate((np.zeros(len(rows), np.int8), np.ones(len(rows), np.int8)))
    inner = np.concatenate((above, rows))
    # at one time: ends before starts, ends from the inside out, starts from the outside in
    rank = np.concatenate((-depth, depth))
    ordered = np.lexsort((rank, opens, time))
    time, inner = time[ordered], inner[ordered]
    last = np.append(time[1:] != time[:-1], True)
    return time[last], inner[last]


def pieces_of(line: tuple[Ints, Ints], begin: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Cut stretches of a line into pieces; return the innermost row and the length of each.

    Stretches are disjoint and sorted.
    """
    times, inner = line
    if not len(times) or not len(begin):
        return np.full(len(begin), -1, np.int64), stop - begin
    # only the part of the line inside the stretches matters
    place = np.searchsorted(begin, times, side="right") - 1
    within = (place >= 0) & (times < stop[np.maximum(place, 0)])
    edges = np.unique(np.concatenate((times[within], begin, stop)))
    left, right = edges[:-1], edges[1:]
    position = np.searchsorted(begin, left, side="right") - 1
    inside = (position >= 0) & (left < stop[np.maximum(position, 0)])
    left, right = left[inside], right[inside]
    place = np.searchsorted(times, left, side="right") - 1
    row = np.where(place >= 0, inner[np.maximum(place, 0)], -1)
    return row, right - left
