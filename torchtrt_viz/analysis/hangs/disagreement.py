"""Collectives under whose number the ranks of a group called different things."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.hangs.agreement import is_exchange
from torchtrt_viz.analysis.hangs.gathering import Collectives, Gathered, Group, Job
from torchtrt_viz.analysis.hangs.hang import Hang, call_at, described, most, ranks_of, site_at

__all__ = ["disagreements"]

_COMPARED = 64
"""So many later calls are compared to tell another order from a call too few or too many."""

Ints = NDArray[np.int64]


def disagreements(gathered: Gathered, job: Job, group: Group, calls: Collectives) -> list[Hang]:
    """Find the first collective in which the ranks of a group disagree: at most one.

    Compared is what each two dumps both have. What follows the first disagreement follows from it.
    """
    order = np.argsort(calls.sequence, kind="stable")
    sequence = calls.sequence[order]
    starts = np.flatnonzero(np.r_[True, sequence[1:] != sequence[:-1]])
    passed = ~np.logical_or.reduceat(~calls.completed[order], starts)  # everyone who called it completed it
    differs = {
        problem: (np.maximum.reduceat(values, starts) != np.minimum.reduceat(values, starts)) & ~passed
        for problem, values in (
            ("type", calls.operation[order]),
            ("size", calls.size[order]),
            ("dtype", calls.types[order]),
        )
    }
    differs["size"] |= _uneven(gathered, group, calls, order, starts) & ~passed
    wrong = np.flatnonzero(differs["type"] | differs["size"] | differs["dtype"])
    if not len(wrong):
        return []
    first = int(wrong[0])
    number = int(sequence[starts[first]])
    rows = np.sort(order[starts[first] : starts[first + 1] if first + 1 < len(starts) else len(order)])
    problem = next(name for name, found in differs.items() if found[first])
    compared = {"type": calls.operation, "size": calls.size, "dtype": calls.types}[problem][rows]
    usual = rows[compared == most(compared)]
    odd = rows[compared != most(compared)]
    told = described(gathered, calls, usual)
    hang = Hang(
        problem=problem,
        certainty="certain",
        group=group,
        sequence=number,
        session=job.session,
        waiting=ranks_of(calls.rank[rows[~calls.completed[rows]]]),
        # where no side has the most, each differs from the other
        differing=ranks_of(calls.rank[odd if len(usual) > len(rows) / 2 else rows]),
        usual=ranks_of(calls.rank[usual]),
        no_dump=ranks_of(set(group.members or ()) - set(job.ranks)),
        later=len(wrong) - 1,
        **told,
    )
    for key in dict.fromkeys(calls.call[odd].tolist()):
        same = odd[calls.call[odd] == key]
        source, _ = site_at(gathered, calls, int(same[0]))
        hang.others.append((ranks_of(calls.rank[same]), call_at(gathered, calls, int(same[0])), source))
    if not len(odd):  # an exchange that does not add up has no one rank to blame
        sent, received = int(calls.sent[rows].sum()), int(calls.received[rows].sum())
        hang.why.append(f"its ranks send {sent:,} elements and expect {received:,}")
    if problem == "type":
        _tell_order(hang, calls, int(usual[0]), int(odd[0]))
    _went_on(hang, group, calls, number)
    return [hang]


def _uneven(
    gathered: Gathered, group: Group, calls: Collectives, order: Ints, starts: Ints
) -> NDArray[np.bool_]:
    """Say which exchanges do not add up; only where every rank of the group recorded the sizes."""
    exchanges = [key for key, call in gathered.calls.items() if is_exchange(call.operation)]
    of = np.isin(calls.call[order], exchanges)
    if not of.any() or group.members is None:
        return np.zeros(len(starts), bool)
    sent, received = calls.sent[order], calls.received[order]
    known = np.logical_and.reduceat(of & (sent >= 0) & (received >= 0), starts)
    whole = np.add.reduceat(np.ones(len(order), np.int64), starts) == len(group.members)
    unequal = np.add.reduceat(sent, starts) != np.add.reduceat(received, starts)
    return np.asarray(known & whole & unequal)


def _tell_order(hang: Hang, calls: Collectives, usual: int, odd: int) -> None:
    """Tell another order of the same calls, and a call left out or added, from calls that differ."""
    here, there = _calls_from(calls, usual), _calls_from(calls, odd)
    if len(here) > 1 and len(there) > 1 and here[0] == there[1] and here[1] == there[0]:
        hang.problem = "order"
        hang.why.append("the two calls are there in the other order")
    elif _same(here[1:], there):
        hang.why.append(
            f"{_who(calls, odd, hang)} left out a call: what follows there are the others' calls from "
            f"{hang.sequence + 1:,} on"
        )
    elif _same(here, there[1:]):
        hang.why.append(
            f"{_who(calls, odd, hang)} made a call more: what follows there from {hang.sequence + 1:,} on "
            f"are the others' calls from {hang.sequence:,} on"
        )
    elif len(here) > 1 and sorted(here[: len(there)]) == sorted(there[: len(here)]):
        hang.problem = "order"
        hang.why.append("the same calls are there in another order")


def _who(calls: Collectives, row: int, hang: Hang) -> str:
    others = len(hang.others[0][0]) - 1
    return f"rank {int(calls.rank[row])}" + (f" and {others:,} more" if others else "")


def _calls_from(calls: Collectives, row: int) -> list[tuple[int, int, int]]:
    end = row + _COMPARED
    same = calls.rank[row:end] == calls.rank[row]
    parts = (calls.operation[row:end][same], calls.size[row:end][same], calls.types[row:end][same])
    return list(zip(*(part.tolist() for part in parts), strict=True))


def _same(one: list[tuple[int, int, int]], other: list[tuple[int, int, int]]) -> bool:
    """Whether two runs of calls are equal as far as both go, over two calls or more that are not alike."""
    length = min(len(one), len(other))
    return length > 1 and one[:length] == other[:length] and (length > 3 or len(set(one[:length])) > 1)


def _went_on(hang: Hang, group: Group, calls: Collectives, number: int) -> None:
    """Take back certainty where every rank went on to later collectives: the difference may have passed."""
    last = {int(rank): int(sequence) for rank, sequence in zip(calls.rank, calls.sequence, strict=True)}
    if not group.tracked and len(last) > 1 and min(last.values()) > number:
        hang.certainty = "possible"
        hang.why.append("every rank called later collectives of the group: this one may have passed")
