"""Nesting of spans that were observed; the others are nobody's parent and nobody's child."""

from __future__ import annotations

import numpy as np

from torchtrt_viz._native import native

__all__ = ["nest_observed"]


def nest_observed(
    track: np.ndarray, start_ns: np.ndarray, dur_ns: np.ndarray, observed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (parent, depth, self_ns) of spans on tracks.

    Rows where ``observed`` is false (sums over calls, modeled times) have no parent, depth 0, and their whole
    duration as self time; they take none off the spans around them.
    """
    parent = np.full(len(track), -1, np.int64)
    depth = np.zeros(len(track), np.int32)
    own = np.array(dur_ns, dtype=np.int64)
    rows = np.flatnonzero(observed)
    if len(rows):
        above, levels, self_ns, _ = native("columns").nest(
            np.ascontiguousarray(track[rows], dtype=np.int32),
            np.ascontiguousarray(start_ns[rows], dtype=np.int64),
            np.ascontiguousarray(dur_ns[rows], dtype=np.int64),
        )
        parent[rows] = np.where(above >= 0, rows[above], -1)
        depth[rows], own[rows] = levels, self_ns
    return parent, depth, own
