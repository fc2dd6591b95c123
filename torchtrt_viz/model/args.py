"""Details of single events, built on demand.

A trace of millions of events carries far more text in the events' arguments than in everything else.
A loader therefore keeps only where they are, and `Args` reads them when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Args", "ArgsSource", "MappingArgs"]


class ArgsSource(Protocol):
    """What a loader gives: the arguments of the spans (or instants) at given rows."""

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return one mapping per row, in the order of ``rows``; {} where the event has none."""
        ...


class MappingArgs:
    """Arguments that are few enough to be held: row -> mapping."""

    def __init__(self, by_row: Mapping[int, Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> None:
        self._by_row = by_row if isinstance(by_row, Mapping) else dict(enumerate(by_row))

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        return [dict(self._by_row.get(int(row), {})) for row in rows]


class Args:
    """Per-event details of one frame: ``args[row]``, ``args.frame(rows)``, ``args.column(key)``.

    Nothing is read from the file before one of them is called.
    """

    def __init__(self, source: ArgsSource | None, length: int) -> None:
        self._source = source
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<Args of {self._length} events; args[row] gives one, args.frame(rows) several>"

    def __getitem__(self, row: int) -> dict[str, Any]:
        """Return the arguments of the event at ``row``.

        Raises
        ------
        IndexError
            When the frame has no such row.
        """
        if not -self._length <= row < self._length:
            raise IndexError(f"row {row} of {self._length}")
        return self.read([row % self._length])[0]

    def read(self, rows: Iterable[int] | np.ndarray | None = None) -> list[dict[str, Any]]:
        """Return one mapping per row (all rows by default)."""
        index = (
            np.arange(self._length)
            if rows is None
            else np.asarray(list(rows) if not isinstance(rows, np.ndarray) else rows, dtype=np.int64)
        )
        if len(index) and (index.min() < 0 or index.max() >= self._length):
            raise IndexError(f"rows outside 0..{self._length - 1}")
        if self._source is None:
            return [{} for _ in index]
        return self._source.read(index)

    def values(self, rows: np.ndarray, key: str) -> tuple[np.ndarray, list[Any]]:
        """Return one argument of many rows: a code per row (-1: the event has none), and each code's value.

        Different codes may stand for equal values. Where the source can, the values are read without
        building the events, which is many times faster than `read`.
        """
        index = np.asarray(rows, dtype=np.int64)
        if len(index) and (index.min() < 0 or index.max() >= self._length):
            raise IndexError(f"rows outside 0..{self._length - 1}")
        fast = getattr(self._source, "values", None)
        if fast is not None:
            codes, values = fast(index, key)
            return codes, values
        out = np.full(len(index), -1, np.int64)
        kept: list[Any] = []
        for position, found in enumerate(self.read(index)):
            if key in found:
                out[position] = len(kept)
                kept.append(found[key])
        return out, kept

    def texts(self, rows: np.ndarray) -> tuple[np.ndarray, list[str]] | None:
        """Return the mappings as JSON text, where the source has it: a code per row, and each code's text.

        Code -1: the event has none; -2: `read` has to be asked. None: the source has no text of any.
        """
        give = getattr(self._source, "texts", None)
        if give is None:
            return None
        told: tuple[np.ndarray, list[str]] | None = give(np.asarray(rows, dtype=np.int64))
        return told

    def frame(
        self, rows: Iterable[int] | np.ndarray | None = None, keys: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return a frame indexed by row: a column per key (all keys found, or ``keys``), NA where absent."""
        import pandas as pd

        index = (
            np.arange(self._length)
            if rows is None
            else np.asarray(list(rows) if not isinstance(rows, np.ndarray) else rows, dtype=np.int64)
        )
        found = self.read(index)
        if keys is None:
            keys = list(dict.fromkeys(key for mapping in found for key in mapping))
        columns = {key: [mapping.get(key, pd.NA) for mapping in found] for key in keys}
        return pd.DataFrame(columns, index=pd.Index(index, name="row"), dtype=object)

    def column(self, key: str) -> pd.Series:
        """Return one argument of every event as a Series (object dtype, NA where absent)."""
        return self.frame(keys=[key])[key]
