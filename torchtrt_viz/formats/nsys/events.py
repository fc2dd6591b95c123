"""Spans and instants as the tables give them, part by part, until they become frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model.schema import DOMAINS, KINDS, STATES, TIMINGS

__all__ = ["GPU", "HOST", "MEASURED", "MODELED", "NO_TIME", "Events", "Part", "Scopes"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

HOST, GPU = DOMAINS.index("host"), DOMAINS.index("gpu")
MEASURED, MODELED = TIMINGS.index("measured"), TIMINGS.index("modeled")
_INSTANT, _UNFINISHED, _INVALID = (STATES.index(state) for state in ("instant", "unfinished", "invalid"))

NO_TIME = int(np.iinfo(np.int64).min)
"""What stands for a start that is not recorded; times before the session's start are negative."""

_ID_BITS = 32
_ID_LOW = (1 << _ID_BITS) - 1


@dataclass
class Part:
    """Rows of one table that became rows of one frame.

    Attributes
    ----------
    positions
        Rows of the table; None: all, in their order.
    dur
        Durations; of instants their states.
    """

    table: str
    positions: Ints | None
    name: NDArray[np.int32]
    kind: NDArray[np.int8]
    domain: int
    timing: int
    track: NDArray[np.int32]
    start: Ints
    dur: NDArray[Any]
    correlation: Ints | None = None
    count: int = 0

    def __post_init__(self) -> None:
        self.count = len(self.start)

    def __len__(self) -> int:
        return self.count

    def take(self, column: str) -> NDArray[Any]:
        """Return a column, and hold it no longer."""
        values: NDArray[Any] = getattr(self, column)
        setattr(self, column, None)
        return values


class Scopes:
    """Ids of launches, each process's apart: CUDA counts them within one."""

    def __init__(self) -> None:
        self._number: dict[int, int] = {}
        self._largest: list[int] = []

    def processes(self) -> list[int]:
        """Return the processes that have ids, in the order in which they were met."""
        return list(self._number)

    def scoped(self, ids: Ints, process: Ints) -> Ints:
        """Return ids that are unique in the file as soon as `dense` has seen them; -1 for none."""
        import pandas as pd  # slow to import

        known = (ids > 0) & (ids <= _ID_LOW)
        inverse, distinct = pd.factorize(process)
        numbers = np.array([self._number.setdefault(key, len(self._number)) for key in distinct.tolist()])
        self._largest += [0] * (len(self._number) - len(self._largest))
        for at, number in enumerate(numbers.tolist()):
            mine = known & (inverse == at) if len(numbers) > 1 else known
            self._largest[number] = max(self._largest[number], int(ids.max(initial=0, where=mine)))
        if not len(numbers):
            return np.full(len(ids), -1, np.int64)
        if len(self._number) == 1:
            return ids if known.all() else np.where(known, ids, -1)
        return np.where(known, ids | (numbers.astype(np.int64) << _ID_BITS)[inverse], -1)

    def dense(self, scoped: Ints) -> Ints:
        """Return the ids of all processes one after the other, without gaps between them."""
        if len(self._largest) < 2:
            return scoped
        shift = np.concatenate([[0], np.cumsum(np.array(self._largest[:-1], np.int64) + 1)])
        known = scoped >= 0
        number = np.where(known, scoped >> _ID_BITS, 0)
        return np.where(known, (scoped & _ID_LOW) + shift[number], -1)


class Events:
    """What the tables hold, and what of it could not be used."""

    def __init__(self) -> None:
        self.spans: list[Part] = []
        self.instants: list[Part] = []
        self.left_out: dict[str, int] = {}
        self.unfinished = 0
        self.invalid = 0
        #: Device work with an id of a launch, of which nothing says in which process that id counts.
        self.unlinked = 0

    def add(
        self,
        table: str,
        *,
        name: NDArray[np.int32],
        kind: NDArray[np.int8] | str,
        domain: int,
        track: NDArray[np.int32],
        start: Ints,
        end: Ints,
        open_end: Mask,
        timing: int = MEASURED,
        correlation: Ints | None = None,
        positions: Ints | None = None,
        zero_is_unknown: bool = False,
    ) -> None:
        """Take the rows of a table; those without an end, or that end before they start, become instants.

        Parameters
        ----------
        open_end
            Where no end is recorded.
        zero_is_unknown
            A start and end of 0 stand for times that could not be had.
        """
        kinds = _kinds(kind, len(start))
        dur = end - start
        wrong = ~open_end & ((end < start) | (dur < 0))  # the second alone: longer than 64 bits hold
        wrong |= start == NO_TIME
        if zero_is_unknown:
            wrong |= (start == 0) & (end == 0)
        used = ~(open_end | wrong)
        if not used.all():
            rows = np.flatnonzero(~used)
            states = np.where(wrong[rows], np.int8(_INVALID), np.int8(_UNFINISHED))
            self.invalid += int(wrong.sum())
            self.unfinished += len(rows) - int(wrong.sum())
            at = rows if positions is None else positions[rows]
            self.instants.append(
                Part(
                    table,
                    at,
                    name[rows],
                    kinds[rows],
                    domain,
                    timing,
                    track[rows],
                    np.where(start[rows] == NO_TIME, 0, start[rows]),
                    states,
                )
            )
            keep = np.flatnonzero(used)
            name, kinds, track, start, dur = name[keep], kinds[keep], track[keep], start[keep], dur[keep]
            correlation = None if correlation is None else correlation[keep]
            positions = keep if positions is None else positions[keep]
        if len(start):
            self.spans.append(
                Part(table, positions, name, kinds, domain, timing, track, start, dur, correlation)
            )

    def add_instants(
        self,
        table: str,
        *,
        name: NDArray[np.int32],
        kind: str,
        domain: int,
        track: NDArray[np.int32],
        at: Ints,
        positions: Ints | None = None,
    ) -> None:
        """Take points in time; those without one are left out."""
        if (at == NO_TIME).any():
            keep = np.flatnonzero(at != NO_TIME)
            self.leave_out("no_time", len(at) - len(keep))
            name, track, at = name[keep], track[keep], at[keep]
            positions = keep if positions is None else positions[keep]
        if len(at):
            states = np.full(len(at), _INSTANT, np.int8)
            kinds = _kinds(kind, len(at))
            self.instants.append(Part(table, positions, name, kinds, domain, MEASURED, track, at, states))

    def leave_out(self, why: str, count: int) -> None:
        """Count rows that are not used."""
        if count:
            self.left_out[why] = self.left_out.get(why, 0) + count


def _kinds(kind: NDArray[np.int8] | str, count: int) -> NDArray[np.int8]:
    return np.full(count, KINDS.index(kind), np.int8) if isinstance(kind, str) else kind
