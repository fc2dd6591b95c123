"""Ids of launches, each process's apart: rocprofiler counts them within one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.rocprof.events import Part

__all__ = ["unique_links"]

Ints = NDArray[np.int64]

_LARGEST = 1 << 62


def unique_links(parts: Sequence[Part]) -> Ints:
    """Return the ids of all rows, unique in the file; -1 for none.

    Those of a single process stay as they are; of several they are numbered anew, from 1 on.
    """
    if not parts:
        return np.zeros(0, np.int64)
    ids = np.concatenate([part.link for part in parts])
    known = (ids > 0) & (ids < _LARGEST)
    scopes = np.concatenate([part.scope for part in parts])
    if (scopes == scopes[0]).all():
        return np.where(known, ids, -1)
    import pandas as pd  # slow to import

    codes, distinct = pd.factorize(np.where(known, ids, -1))
    keys, _ = pd.factorize(scopes * len(distinct) + codes)
    return np.where(known, keys + 1, -1)
