"""Sets of time intervals, exact to the nanosecond.

An interval is half open, ``[start, end)``. A *set* here is a pair of arrays (starts, ends), sorted and
disjoint, as :func:`merge` makes it. Busy time is always the length of a union, never a sum of durations:
work on several streams, and even on one, overlaps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["IntervalSet", "cover", "inside_of", "intersect", "length", "merge", "subtract", "union"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
IntervalSet = tuple[Ints, Ints]

_NONE = np.zeros(0, np.int64)


def merge(start: Ints, end: Ints) -> IntervalSet:
    """Return the union of any intervals as a set; empty intervals vanish."""
    some = end > start
    if not some.all():
        start, end = start[some], end[some]
    if len(start) == 0:
        return _NONE, _NONE
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > reach[:-1]))
    first = np.flatnonzero(opens)
    last = np.concatenate((first[1:] - 1, [len(start) - 1]))
    return start[first], reach[last]


def length(intervals: IntervalSet) -> int:
    """Return the total length of a set, in the unit of its ends."""
    return int((intervals[1] - intervals[0]).sum())


def union(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """Return what lies in ``a`` or in ``b``."""
    return merge(np.concatenate((a[0], b[0])), np.concatenate((a[1], b[1])))


def intersect(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """Return what lies in ``a`` and in ``b``."""
    return _sweep(a, b, lambda in_a, in_b: in_a & in_b)


def subtract(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """Return what lies in ``a`` and not in ``b``."""
    return _sweep(a, b, lambda in_a, in_b: in_a & ~in_b)


def _sweep(a: IntervalSet, b: IntervalSet, keep: Callable[[Mask, Mask], Mask]) -> IntervalSet:
    # each part is in order already: this merges them; equal edges make empty intervals, which vanish
    edges = np.sort(np.concatenate((a[0], a[1], b[0], b[1])), kind="stable")
    if len(edges) < 2:
        return _NONE, _NONE
    left = edges[:-1]
    wanted = keep(inside_of(a, left), inside_of(b, left))
    return merge(left[wanted], edges[1:][wanted])


def inside_of(intervals: IntervalSet, at: Ints) -> Mask:
    """Say for each time whether it lies in the set."""
    if len(intervals[0]) == 0:
        return np.zeros(len(at), bool)
    position = np.searchsorted(intervals[0], at, side="right") - 1
    inside: Mask = (position >= 0) & (at < intervals[1][np.maximum(position, 0)])
    return inside


def cover(intervals: IntervalSet, start: Ints, end: Ints) -> Ints:
    """Return how much of each ``[start, end)`` lies in the set."""
    starts, ends = intervals
    if len(starts) == 0:
        return np.zeros(len(start), np.int64)
    before = np.concatenate(([0], np.cumsum(ends - starts)))

    def up_to(at: Ints) -> Ints:
        position = np.searchsorted(starts, at, side="right") - 1
        inside = np.maximum(position, 0)
        part = np.clip(at - starts[inside], 0, ends[inside] - starts[inside])
        covered: Ints = np.where(position >= 0, before[inside] + part, 0)
        return covered

    return up_to(np.maximum(end, start)) - up_to(start)
