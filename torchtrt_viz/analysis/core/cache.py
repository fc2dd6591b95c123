"""What several analyses need of a trace, worked out once and kept until the columns it came from change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from torchtrt_viz.model.optional_ints import parts
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["kept"]

Value = TypeVar("Value")

#: From pandas 3 on a frame that is written to leaves the columns that others hold as they were.
_COPIES_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3


class _Seen:
    """The columns of one trace when an analysis last saw them, and what was made of them."""

    def __init__(self) -> None:
        self.columns: dict[tuple[str, str], tuple[pd.Series, int]] = {}
        self.results: dict[str, tuple[tuple[int, ...], object]] = {}

    def version(self, frame: str, name: str, column: pd.Series) -> int:
        """Return a number that goes up whenever the column's values are others than before."""
        before = self.columns.get((frame, name))
        if before is not None and _same(before[0], column):
            return before[1]
        version = 0 if before is None else before[1] + 1
        self.columns[frame, name] = (column.copy(deep=not _COPIES_ON_WRITE), version)
        return version


_SEEN: WeakKeyDictionary[TraceData, _Seen] = WeakKeyDictionary()


def kept(
    trace: TraceData, name: str, inputs: Mapping[str, Sequence[str]], make: Callable[[], Value]
) -> Value:
    """Return ``make()``, or what it returned before when every column that it reads has the same values.

    Parameters
    ----------
    name
        What is kept.
    inputs
        Columns that ``make`` reads, by the frame of the trace: ``{"spans": ("start_ns", "dur_ns")}``.

    Notes
    -----
    The frames are the user's, who may write into them, add columns, or put other frames in their place. So
    the values themselves are compared with those of the last look (a few milliseconds for a million spans):
    an answer never outlives a change, however it was made. What is kept goes with the trace.

    Before pandas 3 the last look's values are copies. From pandas 3 on they take no memory, and what is not
    seen is a write behind pandas' back, to an array that was made writable by hand.
    """
    seen = _SEEN.setdefault(trace, _Seen())
    now = tuple(
        seen.version(frame, column, getattr(trace, frame)[column])
        for frame, columns in inputs.items()
        for column in columns
    )
    before = seen.results.get(name)
    if before is not None and before[0] == now:
        return cast(Value, before[1])
    value = make()
    seen.results[name] = (now, value)
    return value


def _same(before: pd.Series, now: pd.Series) -> bool:
    if isinstance(now.array, pd.arrays.IntegerArray) and isinstance(before.array, pd.arrays.IntegerArray):
        return _same_numbers(before, now)
    if not isinstance(now.dtype, pd.CategoricalDtype) or not isinstance(before.dtype, pd.CategoricalDtype):
        return before.equals(now)
    mine, theirs = before.cat.categories, now.cat.categories
    same_names = mine is theirs or (mine.dtype == theirs.dtype and mine.equals(theirs))
    return same_names and _codes(before).equals(_codes(now))


def _same_numbers(before: pd.Series, now: pd.Series) -> bool:
    """Compare nullable columns; pandas compares, and copies, only what is not missing: many times slower."""
    (mine, missing), (theirs, missing_then) = parts(before), parts(now)
    if mine.dtype != theirs.dtype or not np.array_equal(mine, theirs):
        return False
    if missing is None or missing_then is None:
        return missing is missing_then
    return np.array_equal(missing, missing_then)


def _codes(column: pd.Series) -> pd.Series[Any]:
    return column.cat.codes
