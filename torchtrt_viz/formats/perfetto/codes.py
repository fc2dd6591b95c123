"""Distinct values of columns of codes, in linear time."""

from __future__ import annotations

import numpy as np

__all__ = ["distinct_codes"]


def distinct_codes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (distinct codes in order, for each row the position of its code among them).

    Codes are -1 or rows of a table, so that a table of flags does without sorting or hashing.
    """
    if not len(codes):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    shifted = codes.astype(np.int64) + 1
    used = np.zeros(int(shifted.max()) + 1, bool)
    used[shifted] = True
    return np.flatnonzero(used) - 1, (np.cumsum(used) - 1)[shifted]
