"""How far each rank got in the collectives of a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.hangs.agreement import Call, together
from torchtrt_viz.analysis.hangs.gathering import Collectives, Gathered, Group, Job

__all__ = ["Standing", "Stood", "standing", "stood"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Standing:
    """Positions in a group, a row per rank that called anything in it.

    Attributes
    ----------
    rank
        The ranks, ascending.
    first, last
        First collective that the rank's dump has, and its last.
    row
        Row of the last one among the group's calls.
    completed
        Last one that is recorded as complete; -1 none.
    older
        Whether another rank has completed, with all others, a collective that this rank's dump lacks: the
        dump was written before.
    floor
        Last collective that every rank must have joined, since one has completed it; -1 none.
    """

    rank: Ints
    first: Ints
    last: Ints
    row: Ints
    completed: Ints
    older: NDArray[np.bool_]
    floor: int


def standing(calls: Collectives, texts: dict[int, Call]) -> Standing:
    """Work out the positions in a group."""
    rank, sequence = calls.rank, calls.sequence
    starts = np.flatnonzero(np.r_[True, rank[1:] != rank[:-1]])
    ends = np.r_[starts[1:], len(rank)] - 1
    done = np.where(calls.completed, sequence, -1)
    met = [key for key in np.unique(calls.call).tolist() if key in texts and together(texts[key].operation)]
    joint = np.where(calls.completed & np.isin(calls.call, met), sequence, -1)
    floor = int(joint.max(initial=-1))
    last = sequence[ends]
    return Standing(
        rank=rank[starts],
        first=sequence[starts],
        last=last,
        row=ends,
        completed=np.maximum.reduceat(done, starts),
        older=last < floor,
        floor=floor,
    )


Stood = list[tuple[Job, list[tuple[Group, Collectives, Standing]]]]
"""Each job with its groups, what was called in them, and how far the ranks got."""


def stood(gathered: Gathered) -> Stood:
    """Work out the positions in all groups of all jobs."""
    return [
        (job, [(group, calls, standing(calls, gathered.calls)) for group, calls in job.collectives()])
        for job in gathered.jobs
    ]
