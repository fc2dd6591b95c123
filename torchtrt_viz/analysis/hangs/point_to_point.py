"""Sends and receives without their other side."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.hangs.agreement import Call, elements
from torchtrt_viz.analysis.hangs.gathering import Gathered, Group, Job
from torchtrt_viz.analysis.hangs.hang import Hang, ranks_of
from torchtrt_viz.analysis.hangs.reduction import COMPLETED, STATES

__all__ = ["without_partner"]

Ints = NDArray[np.int64]

_NOT_WHOLE = "the recorders no longer have the first sends and receives: only those under way are matched"
_MISSING = Call(None, None, None, None, None)


def without_partner(gathered: Gathered, job: Job) -> list[Hang]:
    """Find the first send or receive between each two ranks that the other side lacks, or does not fit.

    Sends from one rank to another and the receives that take them are matched in their order: by their number
    from the beginning where both dumps begin there, else those that are under way on both sides.
    """
    frame = _with_batches(job)
    if not len(frame):
        return []
    out: list[Hang] = []
    for _, part in frame.groupby(["group", "sender", "receiver"], sort=True):
        first = part.iloc[0]
        group = job.groups[int(first["group"])]
        source, target = (_global(group, int(first[name])) for name in ("sender", "receiver"))
        if source is None or target is None or source == target:
            continue
        sends = part[part["rank"] == source]
        receives = part[part["rank"] == target]
        out += _pair(gathered, job, group, (source, target), sends, receives)
    return out


def _with_batches(job: Job) -> pd.DataFrame:
    """Return the sends and receives in order; those of a batch have the state of the batch's own entry."""
    calls = job.calls[job.calls["p2p"].to_numpy()]
    calls = calls.sort_values(["rank", "order"], kind="stable")
    if not len(calls):
        return calls
    keys = ["rank", "group", "p2p_sequence"]
    one_by_one = calls["sender"].to_numpy() >= 0
    batch = calls[~one_by_one].drop_duplicates(keys, keep="last")[[*keys, "state", "retired", "overdue"]]
    singles = calls[one_by_one].merge(batch, on=keys, how="left", suffixes=("", "_batch"))
    for name in ("state", "retired", "overdue"):
        of_batch = singles.pop(f"{name}_batch")
        singles[name] = singles[name].where(of_batch.isna(), of_batch).astype(calls[name].dtype)
    return singles


def _global(group: Group, number: int) -> int | None:
    """Return the rank that a number within the group stands for."""
    if group.members is None:
        return number if group.everyone else None
    return group.members[number] if number < len(group.members) else None


def _pair(
    gathered: Gathered,
    job: Job,
    group: Group,
    ends: tuple[int, int],
    sends: pd.DataFrame,
    receives: pd.DataFrame,
) -> list[Hang]:
    source, target = ends
    whole = source in job.begins and target in job.begins
    if not whole:
        sends, receives = (side[_under_way(side)] for side in (sends, receives))
    both = min(len(sends), len(receives))
    unequal = _unequal(gathered, sends.iloc[:both], receives.iloc[:both])
    if unequal is not None:
        one, other = sends.iloc[[unequal]], receives.iloc[[unequal]]
        if _under_way(one).any() or _under_way(other).any():
            hang = _hang(gathered, job, group, "size", one, unequal + 1, ends)
            hang.certainty = "certain"
            hang.waiting = ranks_of(ends)
            hang.differing = (target,)
            hang.others = [((target,), *_told(gathered, other.iloc[0]))]
            return [hang]
    more, lacking = (sends, target) if len(sends) > len(receives) else (receives, source)
    rest = more.iloc[both:]
    rest = rest[_under_way(rest)] if group.tracked else rest
    if not len(rest):
        return []
    number = both + 1 + int(np.flatnonzero(more.index == rest.index[0])[0]) - both
    hang = _hang(gathered, job, group, "no partner", rest.iloc[:1], number, ends)
    if lacking in job.ranks:
        hang.missing = (lacking,)
    else:
        hang.no_dump, hang.certainty = (lacking,), "possible"
    failed = _failed(rest, group)
    if failed and hang.missing:
        hang.certainty = "certain"
    if not whole:
        hang.why.append(
            "the recorders no longer have the first sends and receives: only those under way are matched"
        )
        hang.certainty = "possible" if not failed else hang.certainty
    return [hang]


def _under_way(side: pd.DataFrame) -> NDArray[np.bool_]:
    return np.asarray(side["state"].to_numpy() != COMPLETED)


def _failed(side: pd.DataFrame, group: Group) -> bool:
    ended = (side["retired"].to_numpy() == 1) | side["overdue"].to_numpy(dtype=bool)
    return bool(group.tracked and (_under_way(side) & ended).any())


def _unequal(gathered: Gathered, sends: pd.DataFrame, receives: pd.DataFrame) -> int | None:
    """Return the position of the first pair of which the sizes or types are known and differ."""
    for position, (sent, taken) in enumerate(zip(sends["call"], receives["call"], strict=True)):
        one, other = gathered.calls.get(int(sent), _MISSING), gathered.calls.get(int(taken), _MISSING)
        sizes = _elements(one), _elements(other)
        types = one.input_types or one.output_types, other.output_types or other.input_types
        if (None not in sizes and sizes[0] != sizes[1]) or (None not in types and types[0] != types[1]):
            return position
    return None


def _elements(call: Call) -> int | None:
    sizes = elements(call.input_sizes) or elements(call.output_sizes)
    return sum(sizes) if sizes else None


def _told(gathered: Gathered, row: pd.Series) -> tuple[Call, str | None]:
    source, _ = gathered.sites.get(int(row["site"]), (None, None))
    return gathered.calls.get(int(row["call"]), _MISSING), source


def _hang(
    gathered: Gathered,
    job: Job,
    group: Group,
    problem: str,
    rows: pd.DataFrame,
    number: int,
    ends: tuple[int, int],
) -> Hang:
    row = rows.iloc[0]
    state = int(row["state"])
    source, stack = gathered.sites.get(int(row["site"]), (None, None))
    return Hang(
        problem=problem,
        certainty="likely",
        group=group,
        sequence=number,
        session=job.session,
        waiting=(int(row["rank"]),),
        call=gathered.calls.get(int(row["call"]), _MISSING),
        state=STATES[state] if state >= 0 else None,
        source=source,
        stack=stack,
        since_ns=int(row["created_ns"]) if row["created_ns"] > 0 else None,
        timeout_ns=int(row["timeout_ns"]) if row["timeout_ns"] > 0 else None,
        sides=ends,
    )
