"""Places for the nodes and edges of a layered graph.

Nodes stand in rows, each below all that it reads from. A tensor that skips rows passes through them at places
of its own, beside the nodes; all its readers share that line. Within rows the order is one that crosses few
edges, and places are as near to those of the neighbours as the order and the widths allow.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "lay_out"]

_ORDER_SWEEPS = 6
_PLACE_SWEEPS = 8
_LINE = 0.14
"""Width that a passing line takes, in widths of a node."""
_MOST_LINES = 20_000
"""Places of passing lines; where there would be more, the longest lines get none."""


@dataclass(frozen=True)
class Layout:
    """Row and place of every node, and the places that an edge passes in the rows between its ends."""

    rank: list[int]
    x: list[float]
    via: list[tuple[float, ...]]


def lay_out(count: int, edges: Sequence[tuple[int, int, Hashable]], last: Sequence[int] = ()) -> Layout:
    """Lay a graph out.

    Parameters
    ----------
    count
        Nodes, numbered in an order of execution.
    edges
        Source, target and what is handed over; edges against the order, and those without a source (-1), move
        nothing.
    last
        Nodes that stand in the last row.
    """
    rank = _ranks(count, edges, last)
    chains: dict[tuple[int, Hashable], int] = {}
    for source, target, what in edges:
        if 0 <= source < target:
            key = (source, what)
            chains[key] = max(chains.get(key, 0), rank[target])
    passing = sorted(chains, key=lambda key: chains[key] - rank[key[0]])
    items: list[tuple[int, float]] = [(rank[node], 1.0) for node in range(count)]
    lines: dict[tuple[int, Hashable], list[int]] = {}
    for key in passing:
        between = range(rank[key[0]] + 1, chains[key])
        if len(items) - count + len(between) > _MOST_LINES:
            break
        lines[key] = list(range(len(items), len(items) + len(between)))
        items += [(row, _LINE) for row in between]
    above: list[list[int]] = [[] for _ in items]
    below: list[list[int]] = [[] for _ in items]

    def join(upper: int, lower: int) -> None:
        above[lower].append(upper)
        below[upper].append(lower)

    for key, line in lines.items():
        for upper, lower in zip([key[0], *line], line, strict=False):
            join(upper, lower)
    for source, target, what in edges:
        if not 0 <= source < target:
            continue
        line = lines.get((source, what), [])
        steps = rank[target] - rank[source]
        if steps == 1:
            join(source, target)
        elif len(line) >= steps - 1:
            join(line[steps - 2], target)
    rows: list[list[int]] = [[] for _ in range(max((row for row, _ in items), default=-1) + 1)]
    for item, (row, _) in enumerate(items):
        rows[row].append(item)
    _order(rows, above, below)
    place = _place(rows, [width for _, width in items], above, below)
    via = []
    for source, target, what in edges:
        steps = rank[target] - rank[source] - 1 if 0 <= source < target else 0
        line = lines.get((source, what), []) if steps > 0 else []
        via.append(tuple(float(place[item]) for item in line[:steps]))
    return Layout(rank, [float(place[node]) for node in range(count)], via)


def _ranks(count: int, edges: Sequence[tuple[int, int, Hashable]], last: Sequence[int]) -> list[int]:
    incoming: list[list[int]] = [[] for _ in range(count)]
    outgoing: list[list[int]] = [[] for _ in range(count)]
    for source, target, _ in edges:
        if 0 <= source < target:
            incoming[target].append(source)
            outgoing[source].append(target)
    rank = [0] * count
    for node in range(count):
        rank[node] = max((rank[source] + 1 for source in incoming[node]), default=0)
    for node in range(count):
        if not incoming[node] and outgoing[node]:
            # inputs and constants stand above what reads them first
            rank[node] = max(0, min(rank[target] for target in outgoing[node]) - 1)
    bottom = max(rank, default=0)
    for node in last:
        rank[node] = bottom
    return rank


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Sort each row by the middle of its neighbours, downwards and upwards in turns."""
    place: dict[int, float] = {}

    def spread(row: list[int]) -> None:
        for position, item in enumerate(row):
            place[item] = position - (len(row) - 1) / 2.0

    for row in rows:
        spread(row)
    for sweep in range(_ORDER_SWEEPS):
        neighbours = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            if len(row) > 1:
                middle = {
                    item: sum(place[other] for other in neighbours[item]) / len(neighbours[item])
                    if neighbours[item]
                    else place[item]
                    for item in row
                }
                row.sort(key=middle.__getitem__)
                spread(row)


def _place(
    rows: list[list[int]], width: list[float], above: list[list[int]], below: list[list[int]]
) -> NDArray[np.float64]:
    place = np.zeros(len(width))
    gaps: list[NDArray[np.float64]] = []
    for row in rows:
        wide = np.array([width[item] for item in row])
        gaps.append(np.concatenate(([0.0], np.cumsum((wide[1:] + wide[:-1]) / 2))) if len(row) else wide)
        place[row] = gaps[-1] - (gaps[-1][-1] / 2 if len(row) else 0.0)
    for sweep in range(_PLACE_SWEEPS):
        neighbours = below if sweep % 2 else above
        order = range(len(rows) - 1, -1, -1) if sweep % 2 else range(len(rows))
        for number in order:
            row = rows[number]
            wanted = np.array(
                [place[neighbours[item]].mean() if neighbours[item] else place[item] for item in row]
            )
            if len(row) == 1:
                place[row[0]] = wanted[0]
            elif row:
                place[row] = _nearest_rising(wanted - gaps[number]) + gaps[number]
    if len(place):
        place -= (place.min() + place.max()) / 2
    return np.round(place, 4)


def _nearest_rising(wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rising numbers that are nearest to the given ones in squares (pool adjacent violators)."""
    sums: list[float] = []
    sizes: list[int] = []
    for value in wanted.tolist():
        sums.append(value)
        sizes.append(1)
        while len(sums) > 1 and sums[-2] / sizes[-2] > sums[-1] / sizes[-1]:
            value, size = sums.pop(), sizes.pop()
            sums[-1] += value
            sizes[-1] += size
    return np.repeat([total / size for total, size in zip(sums, sizes, strict=True)], sizes)
