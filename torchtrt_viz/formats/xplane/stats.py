"""Statistics of planes, descriptions and events: values by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ABSENT", "Stats", "StatsOfEvents"]

Ints = NDArray[np.int64]

ABSENT = int(np.iinfo(np.int64).min)
"""What stands in a column of numbers for none."""

_REAL, _UNSIGNED, _SIGNED, _TEXT, _BYTES = 1, 2, 3, 4, 5


class Stats:
    """Statistics of the rows of one table."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], strings: Sequence[str]) -> None:
        self.begin: Ints = columns["begin"]
        self._name = columns["name"].astype(np.int64)
        self._type = columns["type"]
        self._value: Ints = columns["value"]
        self._strings = strings
        self._rows: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.begin) - 1

    @property
    def rows(self) -> NDArray[np.int32]:
        """The row of each statistic."""
        if self._rows is None:
            self._rows = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.begin))
        return self._rows

    def at(self, row: int) -> dict[str, Any]:
        """Return the statistics of one row."""
        return {
            name: self._python(at)
            for at in range(int(self.begin[row]), int(self.begin[row + 1]))
            if (name := self.name_of(at)) is not None
        }

    def name_of(self, at: int) -> str | None:
        """Return the name of one statistic, None where its description is missing."""
        code = int(self._name[at])
        return self._strings[code] if code < len(self._strings) else None

    def _python(self, at: int) -> Any:
        kind, value = int(self._type[at]), int(self._value[at])
        if kind == _REAL:
            return float(np.int64(value).view(np.float64))
        if kind == _UNSIGNED:
            return value % (1 << 64)
        if kind == _TEXT:
            return self._strings[value]
        return f"{value} bytes" if kind == _BYTES else value if kind == _SIGNED else None

    def _named(self, code: int | None, kinds: tuple[int, ...]) -> Ints:
        if code is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero((self._name == code) & np.isin(self._type, kinds))

    def has(self, code: int | None) -> NDArray[np.bool_]:
        """Say for each row whether it has a statistic of this name."""
        out = np.zeros(len(self), bool)
        if code is not None:
            out[self.rows[np.flatnonzero(self._name == code)]] = True
        return out

    def integers(self, code: int | None) -> Ints:
        """Return one statistic of every row as integers, `ABSENT` where there is none."""
        out = np.full(len(self), ABSENT, np.int64)
        found = self._named(code, (_UNSIGNED, _SIGNED))
        out[self.rows[found]] = self._value[found]
        return out

    def texts(self, code: int | None) -> Ints:
        """Return one statistic of every row as numbers of strings, -1 where there is none."""
        out = np.full(len(self), -1, np.int64)
        found = self._named(code, (_TEXT,))
        out[self.rows[found]] = self._value[found]
        return out

    def reals(self, code: int | None) -> NDArray[np.float64]:
        """Return one statistic of every row as a number of any type, NaN where there is none."""
        out = np.full(len(self), np.nan)
        for kinds in ((_UNSIGNED,), (_SIGNED,), (_REAL,)):
            found = self._named(code, kinds)
            values = self._value[found]
            numbers = values.view(np.float64) if kinds == (_REAL,) else values.astype(np.float64)
            out[self.rows[found]] = numbers
        return out

    def positions(self, code: int | None) -> Ints:
        """Return where the statistic of this name is, for every row; -1 where there is none."""
        out = np.full(len(self), -1, np.int64)
        if code is not None:
            found = np.flatnonzero(self._name == code)
            out[self.rows[found]] = found
        return out

    def distinct(self, positions: Ints) -> tuple[Ints, list[Any]]:
        """Return a code for each position (-1 stays), and the value of each code."""
        codes = np.full(len(positions), -1, np.int64)
        known = np.flatnonzero(positions >= 0)
        at = positions[known]
        # a text and a number may be of one value, not of one type
        key = np.stack([self._type[at].astype(np.int64), self._value[at]])
        if not len(at):
            return codes, []
        _, first, inverse = np.unique(key, axis=1, return_index=True, return_inverse=True)
        codes[known] = inverse.reshape(-1)
        return codes, [self._python(int(at[one])) for one in first.tolist()]


class StatsOfEvents:
    """Statistics of events: their own, else those of their description."""

    def __init__(self, own: Stats, shared: Stats, kind: NDArray[np.int32], strings: Sequence[str]) -> None:
        self.own, self.shared, self.kind = own, shared, kind
        self._code = {text: code for code, text in enumerate(strings)}

    def code(self, name: str) -> int | None:
        """Return the number of a string; None where the file has it nowhere."""
        return self._code.get(name)

    def _with_shared(self, own: NDArray[Any], shared: NDArray[Any], none: int) -> NDArray[Any]:
        known = self.kind >= 0
        if not len(shared) or not known.any() or (shared == none).all():
            return own
        described = np.where(known, shared[np.maximum(self.kind, 0)], none)
        return np.where(own == none, described, own)

    def integers(self, name: str) -> Ints:
        """Return one statistic of every event as integers, `ABSENT` where there is none."""
        code = self.code(name)
        return self._with_shared(self.own.integers(code), self.shared.integers(code), ABSENT)

    def texts(self, name: str) -> Ints:
        """Return one statistic of every event as numbers of strings, -1 where there is none."""
        code = self.code(name)
        return self._with_shared(self.own.texts(code), self.shared.texts(code), -1)

    def has(self, name: str) -> NDArray[np.bool_]:
        """Say for each event whether it has a statistic of this name."""
        code = self.code(name)
        return self._with_shared(self.own.has(code), self.shared.has(code), 0).astype(bool)

    def values(self, events: Ints, name: str) -> tuple[Ints, list[Any]]:
        """Return one statistic of some events: a code each (-1 none), and the value of each code."""
        code = self.code(name)
        codes, values = self.own.distinct(self.own.positions(code)[events])
        kind = self.kind[events]
        left = np.flatnonzero((codes < 0) & (kind >= 0))
        if len(left) and code is not None:
            of_kind, more = self.shared.distinct(self.shared.positions(code)[kind[left]])
            codes[left] = np.where(of_kind >= 0, of_kind + len(values), -1)
            values = values + more
        return codes, values
