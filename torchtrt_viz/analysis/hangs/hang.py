"""One row of the table of hangs, before it is put into words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.hangs.agreement import Call
from torchtrt_viz.analysis.hangs.gathering import Collectives, Gathered, Group
from torchtrt_viz.analysis.hangs.reduction import STATES

__all__ = ["Hang", "call_at", "described", "most", "ranks_of", "site_at"]


@dataclass
class Hang:
    """A collective in which ranks wait or disagree; the attributes are columns of ``session.hangs``.

    ``call`` is what most of the waiting ranks called, ``others`` what the differing ones did, each with its
    ranks and the line of the program; ``behind`` says for each last call of missing ranks which ranks that
    are; ``usual`` are the ranks that called what most did; ``held`` says in words what holds the missing
    ranks up; ``sides`` are sender and receiver.
    """

    problem: str
    certainty: str
    group: Group
    sequence: int
    waiting: tuple[int, ...]
    call: Call
    session: str | None = None
    missing: tuple[int, ...] = ()
    differing: tuple[int, ...] = ()
    no_dump: tuple[int, ...] = ()
    state: str | None = None
    source: str | None = None
    stack: str | None = None
    others: list[tuple[tuple[int, ...], Call, str | None]] = field(default_factory=list)
    behind: list[tuple[tuple[int, ...], int, Call | None, str | None]] = field(default_factory=list)
    since_ns: int | None = None
    timeout_ns: int | None = None
    held_by: int | None = None
    held: str | None = None
    usual: tuple[int, ...] = ()
    sides: tuple[int, int] | None = None
    why: list[str] = field(default_factory=list)
    later: int = 0


def ranks_of(values: Iterable[Any]) -> tuple[int, ...]:
    """Return ranks as a sorted tuple of plain integers."""
    return tuple(sorted(int(value) for value in values))


def most(values: NDArray[np.int64]) -> int:
    """Return the commonest value; of several the one that stands first."""
    found, first, count = np.unique(values, return_index=True, return_counts=True)
    return int(found[np.lexsort([first, -count])[0]])


def call_at(gathered: Gathered, calls: Collectives, row: int) -> Call:
    """Return what a row called."""
    return gathered.calls.get(int(calls.call[row]), Call(None, None, None, None, None))


def site_at(gathered: Gathered, calls: Collectives, row: int) -> tuple[str | None, str | None]:
    """Return the line that a row was called at, and the whole stack as far as it was kept."""
    return gathered.sites.get(int(calls.site[row]), (None, None))


def _state(calls: Collectives, rows: NDArray[np.int64]) -> str | None:
    """Say what the recorder says of these calls: "started", "scheduled, started"."""
    states = sorted({int(state) for state in calls.state[rows] if state >= 0})
    return ", ".join(STATES[state] for state in states) or None


def described(gathered: Gathered, calls: Collectives, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Return what a row of the table says about the call of most of these rows."""
    common = most(calls.call[rows])
    row = int(rows[np.flatnonzero(calls.call[rows] == common)[0]])
    source, stack = site_at(gathered, calls, row)
    created = calls.created_ns[rows]
    return {
        "call": call_at(gathered, calls, row),
        "source": source,
        "stack": stack,
        "state": _state(calls, rows),
        "since_ns": int(created[created > 0].min()) if (created > 0).any() else None,
        "timeout_ns": int(calls.timeout_ns[row]) if calls.timeout_ns[row] > 0 else None,
    }
