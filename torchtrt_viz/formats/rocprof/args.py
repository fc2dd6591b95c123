"""Details of single events, asked of the tables that the events are rows of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.rocprof.events import Part

__all__ = ["RowArgs", "blocks_of"]

Ints = NDArray[np.int64]


class RowArgs:
    """Arguments of the rows of one frame."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._details = [part.details for part in parts]
        self._positions = [part.positions for part in parts]
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])

    def read(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        """Return one mapping per row.

        Raises
        ------
        TraceFormatError
            When they lie in a file that is gone, or not the one that was loaded any more.
        """
        rows = np.asarray(rows, np.int64)
        out: list[dict[str, Any]] = [{} for _ in range(len(rows))]
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        for part in np.unique(part_of).tolist():
            mine = np.flatnonzero(part_of == part)
            at = self._positions[part][rows[mine] - self._starts[part]]
            for row, found in zip(mine.tolist(), self._details[part].read(at), strict=True):
                out[row] = found
        return out

    def values(self, rows: NDArray[Any], key: str) -> tuple[Ints, list[Any]]:
        """Return one argument of many rows: a code per row (-1 none), and each code's value."""
        rows = np.asarray(rows, np.int64)
        codes = np.full(len(rows), -1, np.int64)
        kept: list[Any] = []
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        for part in np.unique(part_of).tolist():
            if not self._details[part].has(key):
                continue
            mine = np.flatnonzero(part_of == part)
            for row, found in zip(mine.tolist(), self.read(rows[mine]), strict=True):
                if key in found:
                    codes[row] = len(kept)
                    kept.append(found[key])
        return codes, kept


def blocks_of(threads: Sequence[int], block: Sequence[int]) -> list[int] | None:
    """Return a grid in blocks, as CUDA and HIP count it; ROCm's profilers count its threads."""
    if len(threads) != 3 or len(block) != 3 or min(block) < 1 or min(threads) < 0:
        return None
    return [-(-number // size) for number, size in zip(threads, block, strict=True)]
