"""Collectives that some ranks of a group have joined and others have not."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.hangs.agreement import Call
from torchtrt_viz.analysis.hangs.gathering import Collectives, Gathered, Group, Job
from torchtrt_viz.analysis.hangs.hang import Hang, call_at, described, ranks_of, site_at
from torchtrt_viz.analysis.hangs.standing import Standing

__all__ = ["not_joined"]

_NO_COMPLETION = (
    "{backend} does not record whether a collective completed, and its status counts failed ones as "
    "completed; that they wait follows from how far the ranks got"
)
_FAILED = "the recorder says that it ended without completing, or outlived its timeout"
_UNDER_WAY = "the recorder says that it is under way"
_SAME_TIME = "as of the moment at which the dumps were written, which is taken to be the same"
_FADED = (
    "the recorders of some missing ranks no longer have any call of the group, so that they may have joined"
)
_NOT_LISTED = "no dump lists the ranks of the group: ranks that never called anything in it are not known"


def not_joined(gathered: Gathered, job: Job, group: Group, calls: Collectives, at: Standing) -> list[Hang]:
    """Find the collective of a group that holds its ranks up: at most one."""
    members = set(at.rank.tolist()) if group.members is None else set(group.members)
    no_dump = ranks_of(members - set(job.ranks))
    silent = ranks_of((members & set(job.ranks)) - set(at.rank.tolist()))  # a dump, and nothing of this group
    current = ~at.older
    if not current.any():
        return []
    never = [rank for rank in silent if rank in job.begins and at.floor < int(at.first.min())]
    faded = [rank for rank in silent if rank not in job.begins and group.tracked]
    lowest = int(at.first.min()) - 1 if never else int(at.last[current].min())
    under_way = _under_way(group, calls, at)
    ahead = current & (at.last > lowest)
    if not ahead.any() or bool((under_way[ahead] <= lowest).all()):
        if not faded:
            return _joined_by_all(gathered, job, group, calls, int(under_way[current].min()), no_dump)
        lowest = int(under_way[current].min()) - 1
    sequence = lowest + 1
    rows = calls.rows_of(sequence)
    waiting = rows[~calls.completed[rows]]
    missing = [int(rank) for rank in at.rank[current & (at.last < sequence)]] + never
    if not len(waiting) or not (missing or faded):
        return []
    failed, is_open = bool(calls.failed[waiting].any()), bool(calls.open[waiting].any())
    hang = Hang(
        problem="not joined",
        certainty="possible" if not missing else "certain" if failed else "likely",
        group=group,
        sequence=sequence,
        session=job.session,
        waiting=ranks_of(calls.rank[waiting]),
        missing=ranks_of([*missing, *faded]),
        no_dump=no_dump,
        **described(gathered, calls, waiting),
    )
    if failed:
        hang.why.append(_FAILED)
    elif not group.tracked and not is_open:
        hang.why.append(_NO_COMPLETION.format(backend=group.backend or "the library"))
    else:
        hang.why += [_UNDER_WAY, _SAME_TIME]
    if faded:
        hang.why.append(_FADED)
    if group.members is None:
        hang.why.append(_NOT_LISTED)
    hang.behind = _behind(gathered, calls, at, missing, [*never, *faded])
    return [hang]


def _under_way(group: Group, calls: Collectives, at: Standing) -> NDArray[np.int64]:
    """Return for each rank the collective that it is in: the first that is not complete.

    Hosts run ahead of their devices: a rank that has called later ones does not wait in them yet. Where
    completion is not recorded it is the first that is recorded as under way, else the last.
    """
    if group.tracked:
        return np.where(at.completed >= 0, at.completed + 1, at.first)
    out = at.last.copy()
    is_open = np.flatnonzero(calls.open)
    np.minimum.at(out, np.searchsorted(at.rank, calls.rank[is_open]), calls.sequence[is_open])
    return out


def _joined_by_all(
    gathered: Gathered, job: Job, group: Group, calls: Collectives, sequence: int, no_dump: tuple[int, ...]
) -> list[Hang]:
    """Find what is wrong with a collective that every rank with a dump has joined."""
    failed = np.flatnonzero(calls.failed)
    if len(failed):
        sequence = int(calls.sequence[failed].min())
        rows = calls.rows_of(sequence)
        waiting = rows[calls.failed[rows]]
        done = ranks_of(calls.rank[rows[calls.completed[rows]]])
        hang = Hang(
            problem="not completed",
            certainty="certain",
            group=group,
            sequence=sequence,
            session=job.session,
            waiting=ranks_of(calls.rank[waiting]),
            no_dump=no_dump,
            why=[_FAILED],
            **described(gathered, calls, waiting),
        )
        if done:
            hang.why.append(f"{len(done):,} of its ranks completed it")
        return [hang]
    rows = calls.rows_of(sequence)
    waiting = rows[~calls.completed[rows]]
    if not no_dump or not len(waiting):
        return []
    return [
        Hang(
            problem="no dump",
            certainty="possible",
            group=group,
            sequence=sequence,
            session=job.session,
            waiting=ranks_of(calls.rank[waiting]),
            no_dump=no_dump,
            why=["a rank that leaves no dump is often the one that failed"],
            **described(gathered, calls, waiting),
        )
    ]


def _behind(
    gathered: Gathered, calls: Collectives, at: Standing, missing: list[int], never: list[int]
) -> list[tuple[tuple[int, ...], int, Call | None, str | None]]:
    """Return the last calls of the missing ranks, the furthest behind first, with the ranks of each."""
    rows = at.row[np.isin(at.rank, missing)]
    same: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for row in rows.tolist():
        same[int(calls.sequence[row]), int(calls.call[row]), int(calls.site[row])].append(row)
    out: list[tuple[tuple[int, ...], int, Call | None, str | None]] = []
    if never:
        out.append((ranks_of(never), -1, None, None))
    for (sequence, _, _), found in sorted(same.items()):
        source, _ = site_at(gathered, calls, found[0])
        out.append((ranks_of(calls.rank[found]), sequence, call_at(gathered, calls, found[0]), source))
    return out
