"""What several analyses need of a trace, worked out once and kept while the columns it came from stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from torchtrt_viz.model.trace_data import TraceData

__all__ = ["kept"]

Value = TypeVar("Value")

_KEPT: WeakKeyDictionary[TraceData, dict[str, tuple[tuple[Any, ...], tuple[Any, ...], Any]]] = (
    WeakKeyDictionary()
)


def kept(trace: TraceData, name: str, columns: Sequence[str], make: Callable[[], Value]) -> Value:
    """Return ``make()``, or what it returned before when none of the columns has changed since.

    Parameters
    ----------
    name
        What is kept.
    columns
        Columns of ``trace.spans`` that it depends on; the tracks and flows of a trace do not change.

    Notes
    -----
    The columns themselves are held, so that a write to the frame makes new ones (pandas copies on write).
    Where pandas does not, nothing is kept: a frame that was changed must never give an old answer.
    """
    if not _copies_on_write():
        return make()
    frames = (id(trace.tracks), id(trace.flows))
    now = [trace.spans[column] for column in columns]
    places = (*frames, *map(_place, now))
    mine = _KEPT.setdefault(trace, {})
    before = mine.get(name)
    if before is not None and before[0] == places:
        return before[2]  # type: ignore[no-any-return]
    value = make()
    # what is held cannot leave its place to something else
    mine[name] = (places, (trace.tracks, trace.flows, *now), value)
    return value


def _place(column: pd.Series) -> tuple[int, ...]:
    """Return what tells a column's values from others that came later: where they lie and how many."""
    if isinstance(column.dtype, np.dtype):
        values = column.to_numpy()
        return int(values.__array_interface__["data"][0]), *values.shape, *values.strides
    return id(column.array), len(column)


def _copies_on_write() -> bool:
    return int(pd.__version__.partition(".")[0]) >= 3
