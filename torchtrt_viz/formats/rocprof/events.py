"""Events as the tables give them, part by part, until they become frames."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.rocprof.vocabulary import HOST
from torchtrt_viz.model.schema import KINDS, STATES

__all__ = ["NO_TIME", "Details", "Events", "Names", "Part"]

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

NO_TIME = -1
"""What stands for a time that is not recorded: the clock counts up from the machine's start."""

_INSTANT, _UNFINISHED, _INVALID = (STATES.index(state) for state in ("instant", "unfinished", "invalid"))


class Details(Protocol):
    """The arguments of the rows of one table."""

    def has(self, key: str) -> bool:
        """Whether any row may have this argument."""
        ...

    def read(self, rows: Ints) -> list[dict[str, Any]]:
        """Return one mapping per row of the table."""
        ...


class Names:
    """One list of names for all events."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._code_of: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Return the code of a name."""
        code = self._code_of.get(text)
        if code is None:
            code = self._code_of[text] = len(self.texts)
            self.texts.append(text)
        return code

    def table(self, texts: list[str | None], missing: str) -> Codes:
        """Return the code of each text, with that of ``missing`` for None, and at the end."""
        return np.array([self.add(text or missing) for text in [*texts, None]], np.int32)


@dataclass
class Part:
    """Rows of one table that became rows of one frame.

    Attributes
    ----------
    positions
        Rows of the table.
    dur
        Durations; of instants their states.
    link
        Ids of launches as the table has them, -1 none; they count within their ``scope``.
    """

    table: str
    details: Details
    positions: Ints
    name: Codes
    kind: NDArray[np.int8]
    domain: int
    track: Codes
    start: Ints
    dur: NDArray[Any]
    link: Ints
    scope: Ints

    def __len__(self) -> int:
        return len(self.start)


class Events:
    """What the tables hold, and what of it could not be used."""

    def __init__(self) -> None:
        self.spans: list[Part] = []
        self.instants: list[Part] = []
        self.left_out: dict[str, int] = {}
        self.unfinished = self.invalid = 0
        #: Table -> number of its records, and of those that are used.
        self.read: dict[str, int] = {}
        self.unread: dict[str, int] = {}
        self.described: dict[str, int] = {}
        #: Table -> durations of its spans.
        self.times: dict[str, int] = {}
        self._scopes: dict[Hashable, int] = {}

    def scope(self, *key: Hashable) -> int:
        """Return the number of what ids of launches count within."""
        return self._scopes.setdefault(key, len(self._scopes))

    def add(
        self,
        table: str,
        details: Details,
        *,
        name: Codes,
        kind: NDArray[np.int8] | str,
        domain: int,
        track: Codes,
        start: Ints,
        end: Ints,
        link: Ints,
        scope: int | Ints,
        marks: Mask | None = None,
    ) -> None:
        """Take the rows of a table.

        Rows without a start are left out; those without an end, or that end before they start, become
        instants.

        Parameters
        ----------
        scope
            What ids of launches count within, of all rows or of each.
        marks
            Points in time.
        """
        count = len(start)
        kinds = np.full(count, KINDS.index(kind), np.int8) if isinstance(kind, str) else kind
        scopes = np.broadcast_to(np.asarray(scope, np.int64), count)
        points = np.zeros(count, bool) if marks is None else marks
        timeless = start < 0
        self.leave_out("no_time", int(timeless.sum()))
        self.read[table] = self.read.get(table, 0) + count - int(timeless.sum())
        open_end = ~timeless & ~points & (end < 0)
        wrong = (
            ~timeless & ~points & ~open_end & ((end < start) | ((start == 0) & (end == 0) & (domain != HOST)))
        )
        self.unfinished += int(open_end.sum())
        self.invalid += int(wrong.sum())
        state = np.where(wrong, _INVALID, np.where(open_end, _UNFINISHED, _INSTANT)).astype(np.int8)
        for rows, into, value in (
            (np.flatnonzero(~(timeless | points | open_end | wrong)), self.spans, end - start),
            (np.flatnonzero(~timeless & (points | open_end | wrong)), self.instants, state),
        ):
            if len(rows):
                into.append(
                    Part(
                        table,
                        details,
                        rows,
                        name[rows],
                        kinds[rows],
                        domain,
                        track[rows],
                        start[rows],
                        value[rows],
                        link[rows],
                        scopes[rows],
                    )
                )
        self.times[table] = self.times.get(table, 0) + sum(
            int(part.dur.sum()) for part in self.spans[-1:] if part.table == table and part.details is details
        )

    def leave_out(self, why: str, count: int) -> None:
        """Count records that are not used."""
        if count:
            self.left_out[why] = self.left_out.get(why, 0) + count
