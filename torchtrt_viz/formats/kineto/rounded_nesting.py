"""Nesting of spans whose times were cut to whole microseconds.

A writer that cuts a start and a duration by themselves lets a call end up to a unit after the call around it.
Such a call is a child all the same: for the nesting alone its end is that of the call around it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native

__all__ = ["nest_rounded"]

Ints = NDArray[np.int64]

_ROUNDS = 16
_DEEPEST = 64


def nest_rounded(
    track: NDArray[np.int32], start: Ints, dur: Ints, unit: int = 1000
) -> tuple[Ints, NDArray[np.int32], Ints, int]:
    """Return parent, depth, self time, and how many spans still cut into another one.

    Parameters
    ----------
    unit
        By how much an end may lie behind the end of the span around it, in ns.
    """
    track = np.ascontiguousarray(track, np.int32)
    start = np.ascontiguousarray(start, np.int64)
    inside = np.ascontiguousarray(dur, np.int64)
    for _ in range(_ROUNDS):
        parent, depth, own, overlaps = native("columns").nest(track, start, inside)
        if not overlaps:
            break
        shorter = _within(track, start, inside, parent, unit)
        if shorter is None:
            break
        inside = shorter
    return parent, depth, own, int(overlaps)


def _within(track: NDArray[np.int32], start: Ints, dur: Ints, parent: Ints, unit: int) -> Ints | None:
    """Return the durations with those cut that end a little behind a span in which they begin; None: none."""
    order = np.lexsort((-dur, start, track))
    end = start + dur
    before = np.full(len(order), -1, np.int64)
    before[order[1:]] = order[:-1]
    limit = end.copy()
    around = before
    for _ in range(_DEEPEST):
        # whoever is open at a start is the span that began before it, or one around that span
        rows = np.flatnonzero(around >= 0)
        if not len(rows):
            break
        other = around[rows]
        open_there = (track[other] == track[rows]) & (start[rows] < end[other])
        cut = open_there & (end[other] < end[rows]) & (end[rows] - end[other] <= unit)
        limit[rows[cut]] = np.minimum(limit[rows[cut]], end[other[cut]])
        following = np.full(len(around), -1, np.int64)
        following[rows] = parent[other]
        around = following
    if (limit == end).all():
        return None
    shorter: Ints = limit - start
    return shorter
