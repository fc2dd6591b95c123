"""Launching calls, each of them once: one call may start one piece of device work, or a graph of hundreds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.groups import exact_sums
from torchtrt_viz.analysis.core.intervals import length, merge
from torchtrt_viz.analysis.core.links import Launches

__all__ = ["LaunchCalls", "launch_calls"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LaunchCalls:
    """Host calls that launched device work of the trace, ordered by the start of their first piece.

    Attributes
    ----------
    host
        Row of the call.
    first
        Position of its first piece in the device work.
    pieces
        How many pieces it launched.
    end
        When the last of them ended.
    busy
        Time in which at least one of them ran.
    total
        Sum of their durations.
    mixed
        Whether they are of several classes.
    """

    host: Ints
    first: Ints
    pieces: Ints
    end: Ints
    busy: Ints
    total: Ints
    mixed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.host)


def launch_calls(found: Launches) -> LaunchCalls:
    """Put the device work of each launching call together."""
    work = found.work
    known = np.flatnonzero(found.host >= 0)
    # work is ordered by start, and stays so within each call
    grouped = known[np.argsort(found.host[known], kind="stable")]
    host = found.host[grouped]
    new = np.diff(host, prepend=-1) != 0
    bounds = np.append(np.flatnonzero(new), len(grouped))
    first, pieces = grouped[bounds[:-1]], np.diff(bounds)
    group = np.cumsum(new) - 1
    end = work.end[first].copy()
    busy = end - work.start[first]
    mixed = np.zeros(len(first), bool)
    for call in np.flatnonzero(pieces > 1).tolist():
        rows = grouped[bounds[call] : bounds[call + 1]]
        end[call] = work.end[rows].max()
        busy[call] = length(merge(work.start[rows], work.end[rows]))
        mixed[call] = (work.kind[rows] != work.kind[rows[0]]).any()
    total = exact_sums(group, work.end[grouped] - work.start[grouped], len(first))
    order = np.argsort(first, kind="stable")
    return LaunchCalls(
        host[bounds[:-1]][order],
        first[order],
        pieces[order],
        end[order],
        busy[order],
        total[order],
        mixed[order],
    )
