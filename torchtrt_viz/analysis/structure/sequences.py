"""The longest common subsequence of two sequences, at a bounded cost.

Common ends are cut off first. What remains is worked out exactly with one big integer per element (64 cells
of the classical table an operation; H. Hyyrö, Bit-parallel LCS-length computation revisited, 2004). Sequences
too long for that are paired by the n-th occurrence of each key, of which the longest increasing run is kept:
n log n, and exact where keys occur once.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

__all__ = ["common"]

Ints = NDArray[np.int64]
Pairs = list[tuple[int, int]]

#: Cells of the table that are worked out exactly: 32 MB of bits.
_CELLS = 1 << 28
_FEW = 64


def common(left: Ints, right: Ints) -> Pairs:
    """Return positions of equal keys, increasing on both sides, as many as there are (see above)."""
    short = min(len(left), len(right))
    if not short:
        return []
    if max(len(left), len(right)) <= _FEW:
        return _few(left.tolist(), right.tolist())
    differ = np.flatnonzero(left[:short] != right[:short])
    head = int(differ[0]) if len(differ) else short
    rest = short - head
    differ = np.flatnonzero(left[len(left) - rest :][::-1] != right[len(right) - rest :][::-1])
    tail = int(differ[0]) if len(differ) else rest
    out: Pairs = [(at, at) for at in range(head)]
    a, b = left[head : len(left) - tail], right[head : len(right) - tail]
    # what the other side lacks cannot be paired
    in_a, in_b = np.flatnonzero(np.isin(a, b)), np.flatnonzero(np.isin(b, a))
    if len(in_a) and len(in_b):
        inner = _exact if len(in_a) * len(in_b) <= _CELLS else _occurrences
        pairs = inner(a[in_a].tolist(), b[in_b].tolist())
        out += [(head + int(in_a[x]), head + int(in_b[y])) for x, y in pairs]
    out += [(len(left) - at, len(right) - at) for at in range(tail, 0, -1)]
    return out


def _few(left: list[int], right: list[int]) -> Pairs:
    """Do the same for short sequences: lists take less time than arrays."""
    short = min(len(left), len(right))
    head = 0
    while head < short and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < short - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    out = [(at, at) for at in range(head)]
    inner = _exact(left[head : len(left) - tail], right[head : len(right) - tail])
    out += [(head + x, head + y) for x, y in inner]
    out += [(len(left) - at, len(right) - at) for at in range(tail, 0, -1)]
    return out


def _exact(left: list[int], right: list[int]) -> Pairs:
    if not (left and right):
        return []
    where: dict[int, int] = {}
    for at, key in enumerate(left):
        where[key] = where.get(key, 0) | (1 << at)
    full = (1 << len(left)) - 1
    row = full
    rows = []
    for key in right:
        found = row & where.get(key, 0)
        row = ((row + found) | (row - found)) & full
        rows.append(row)
    out: Pairs = []
    x, y = len(left), len(right)
    while x and y:
        if rows[y - 1] >> (x - 1) & 1:
            x -= 1
        else:
            y -= 1
            if not y or rows[y - 1] >> (x - 1) & 1:
                x -= 1
                out.append((x, y))
    return out[::-1]


def _occurrences(left: list[int], right: list[int]) -> Pairs:
    seen: dict[int, int] = {}
    place: dict[tuple[int, int], int] = {}
    for at, key in enumerate(left):
        number = seen[key] = seen.get(key, -1) + 1
        place[key, number] = at
    seen.clear()
    pairs: Pairs = []
    for at, key in enumerate(right):
        number = seen[key] = seen.get(key, -1) + 1
        if (key, number) in place:
            pairs.append((place[key, number], at))
    return _increasing(pairs)


def _increasing(pairs: Pairs) -> Pairs:
    """Return the longest run of pairs, whose second positions increase, in which the first ones do too."""
    ends: list[int] = []
    holders: list[int] = []
    before = [-1] * len(pairs)
    for at, (x, _) in enumerate(pairs):
        length = bisect_left(ends, x)
        before[at] = holders[length - 1] if length else -1
        if length == len(ends):
            ends.append(x)
            holders.append(at)
        else:
            ends[length], holders[length] = x, at
    out: Pairs = []
    at = holders[-1] if holders else -1
    while at >= 0:
        out.append(pairs[at])
        at = before[at]
    return out[::-1]
