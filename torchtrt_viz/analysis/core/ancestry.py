"""Who encloses whom: walks along the ``parent`` column, over all rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest", "outermost", "recursive"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def nearest(parent: Ints, keep: Mask) -> Ints:
    """Return for every row the nearest enclosing row where ``keep`` is true, -1 none.

    Raises
    ------
    ValueError
        When the parents form a circle.
    """
    jump = np.array(parent, dtype=np.int64)
    pending = np.flatnonzero(jump >= 0)
    pending = pending[~keep[jump[pending]]]
    # every round doubles the distance that a row has looked upwards
    for _ in range(64):
        if len(pending) == 0:
            return jump
        jump[pending] = jump[jump[pending]]
        pending = pending[jump[pending] >= 0]
        pending = pending[~keep[jump[pending]]]
    raise ValueError("the column 'parent' leads in a circle")


def outermost(parent: Ints, keep: Mask) -> Mask:
    """Say for every row whether it is kept and nothing kept encloses it."""
    return keep & (nearest(parent, keep) < 0)


def recursive(rows: Ints, parent: Ints, code: Ints) -> Mask:
    """Say for each of ``rows`` whether a row with the same code encloses it.

    ``parent`` and ``code`` are whole columns; ``parent`` leads from one row of interest to the next (what
    :func:`nearest` returns), so that the walk is as long as the calls of interest are nested.
    """
    out = np.zeros(len(rows), bool)
    position = np.arange(len(rows))
    above = parent[rows]
    while True:
        inside = above >= 0
        position, above = position[inside], above[inside]
        if len(position) == 0:
            return out
        same = code[above] == code[rows[position]]
        out[position[same]] = True
        position, above = position[~same], parent[above[~same]]
