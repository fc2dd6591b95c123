"""Distinct values of columns: few of many, so without sorting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["combinations", "distinct"]

Ints = NDArray[np.int64]


def distinct(values: Ints) -> tuple[list[int], Ints]:
    """Return the distinct values, and the position of each row's among them."""
    import pandas as pd  # slow to import

    inverse, found = pd.factorize(values)
    return found.tolist(), inverse


def combinations(columns: Sequence[Ints]) -> tuple[list[tuple[int, ...]], Ints]:
    """Return the distinct combinations of several columns, and the position of each row's among them."""
    if len(columns) == 1:
        values, inverse = distinct(columns[0])
        return [(value,) for value in values], inverse
    import pandas as pd  # slow to import

    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        inverse, found = pd.factorize(column)
        codes = codes * max(1, len(found)) + inverse
        codes = pd.factorize(codes)[0]  # the product stays small
    first = np.zeros(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    return list(rows), codes
