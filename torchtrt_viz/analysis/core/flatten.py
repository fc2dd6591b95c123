"""A thread's nested spans as one line: which of them was innermost at each time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.masks import ends, ints
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["innermost_line", "pieces_of", "sweep"]

Ints = NDArray[np.int64]


def innermost_line(trace: TraceData, mask: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return times, and the row that is innermost from each time on (-1 none), of the spans of one thread.

    Of spans that overlap without lying inside each other the later one counts.
    """
    start, end = ints(trace.spans["start_ns"]), ends(trace)
    rows = np.flatnonzero(mask & (end > start))
    times, inner = sweep(start[rows], end[rows])
    return times, np.where(inner >= 0, rows[np.maximum(inner, 0)] if len(rows) else inner, -1)


def sweep(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return times, and the position of the span that counts from each time on, -1 where none runs.

    Of the spans that run at a time the one that began last counts, of those that began together the shortest,
    then the last one in order: where spans nest, that is the innermost.
    """
    order = np.lexsort((np.arange(len(start)), -end, start))
    times: list[int] = []
    inner: list[int] = []
    running: list[tuple[int, int]] = []  # (position, end): the one that counts is on top

    def until(now: int | None) -> None:
        """Let spans end, until ``now``."""
        while running and (now is None or running[-1][1] <= now):
            ended = running.pop()[1]
            while running and running[-1][1] <= ended:
                running.pop()
            times.append(ended)
            inner.append(running[-1][0] if running else -1)

    for position, begin, stop in zip(order.tolist(), start[order].tolist(), end[order].tolist(), strict=True):
        until(begin)
        if stop > begin:
            running.append((position, stop))
            times.append(begin)
            inner.append(position)
    until(None)
    when, which = np.array(times, np.int64), np.array(inner, np.int64)
    last = np.append(when[1:] != when[:-1], True) if len(when) else np.zeros(0, bool)
    return when[last], which[last]


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
