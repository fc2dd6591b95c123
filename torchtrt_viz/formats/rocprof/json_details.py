"""Arguments of records, kept as columns: the document itself is let go when it has been read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.torch_ranges import details_of, stem_of
from torchtrt_viz.formats.rocprof.args import blocks_of

__all__ = ["RecordDetails"]

Ints = NDArray[np.int64]

_OF_TEXTS = ("args", "operation", "text", "Input Dims", "Sequence number", "op_id")
_IDS = ("correlation", "ancestor", "external correlation")


class RecordDetails:
    """The arguments of the records of one list.

    Parameters
    ----------
    columns
        Name -> number of each record; negative ones are missing, and an id that is 0.
    grid, block
        Of kernels, in threads, as the profiler has them.
    calls
        Of calls, the list of arguments that each was given, or None.
    operation, texts
        Names of operations, and texts of markers, and the one of each record.
    """

    def __init__(
        self,
        columns: Mapping[str, Ints],
        *,
        grid: Ints | None = None,
        block: Ints | None = None,
        calls: Sequence[Any] | None = None,
        operation: tuple[list[str], Ints] | None = None,
        texts: tuple[list[str], Ints] | None = None,
    ) -> None:
        self._columns = {name: values for name, values in columns.items() if (values >= _least(name)).any()}
        self._grid, self._block = grid, block
        self._calls = (
            _Packed(calls) if calls is not None and any(call is not None for call in calls) else None
        )
        self._operation, self._texts = operation, texts

    def column(self, name: str) -> Ints:
        """Return a column, -1 where it is missing."""
        return self._columns[name]

    def has(self, key: str) -> bool:
        """Whether any record may have this argument."""
        made = ("grid", "block", "grid_size", "workgroup_size") if self._grid is not None else ()
        return key in self._columns or key in made or key in _OF_TEXTS

    def read(self, rows: Ints) -> list[dict[str, Any]]:
        """Return one mapping per record."""
        out: list[dict[str, Any]] = [{} for _ in range(len(rows))]
        if self._operation is not None:
            names, codes = self._operation
            for found, code in zip(out, codes[rows].tolist(), strict=True):
                found["operation"] = names[code]
        if self._texts is not None:
            texts, codes = self._texts
            for found, code in zip(out, codes[rows].tolist(), strict=True):
                if code >= 0 and stem_of(texts[code]) != texts[code]:
                    found |= {"text": texts[code], **details_of(texts[code])}
        if self._grid is not None and self._block is not None:
            sizes = zip(self._grid[rows].tolist(), self._block[rows].tolist(), strict=True)
            for found, (grid, block) in zip(out, sizes, strict=True):
                if min(*grid, *block) >= 0:
                    blocks = blocks_of(grid, block)
                    if blocks is not None:
                        found["grid"] = blocks
                    found |= {"block": block, "grid_size": grid, "workgroup_size": block}
        for name, column in self._columns.items():
            least = _least(name)
            for found, value in zip(out, column[rows].tolist(), strict=True):
                if value >= least:
                    found[name] = value
        if self._calls is not None:
            for found, value in zip(out, self._calls.read(rows), strict=True):
                if value is not None:
                    found["args"] = value
        return out


def _least(name: str) -> int:
    """Return the least number of a column that says something: ids count from 1."""
    return 1 if name in _IDS else 0


class _Packed:
    """Many small values as JSON in one run of bytes."""

    def __init__(self, values: Sequence[Any]) -> None:
        parts = [b"" if value is None else _written(value) for value in values]
        self._ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        self._bytes = b"".join(parts)

    def read(self, rows: Ints) -> list[Any]:
        """Return the values of some rows."""
        begins = np.concatenate([[0], self._ends[:-1]])[rows].tolist()
        pieces = zip(begins, self._ends[rows].tolist(), strict=True)
        return [None if begin == end else orjson.loads(self._bytes[begin:end]) for begin, end in pieces]


def _written(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return orjson.dumps(str(value)[:1000])
