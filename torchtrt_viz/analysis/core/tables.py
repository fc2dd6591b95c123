"""What the tables have in common: missing values, shares, statistics of durations, order and length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.errors import OptionError

__all__ = ["duration_columns", "floats", "integers", "number_or_nan", "order", "percent", "records", "text"]


def integers(values: ArrayLike, known: ArrayLike | bool = True) -> pd.arrays.IntegerArray:
    """Return a nullable integer column, NA where not ``known``."""
    data = np.array(values, dtype=np.int64)
    return pd.arrays.IntegerArray(data, ~np.broadcast_to(np.asarray(known, bool), data.shape).copy())


def floats(values: ArrayLike, known: ArrayLike | bool = True) -> pd.arrays.FloatingArray:
    """Return a nullable float column, NA where not ``known`` or not a number."""
    data = np.array(values, dtype=np.float64)
    mask = np.isnan(data) | ~np.broadcast_to(np.asarray(known, bool), data.shape)
    return pd.arrays.FloatingArray(np.where(mask, 0.0, data), mask)


def text(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Return a column of text (object dtype, None where there is none)."""
    out = np.empty(len(values), dtype=object)
    out[:] = [value if type(value) is str else None if _missing(value) else str(value) for value in values]
    return out


def _missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def number_or_nan(value: Any) -> float:
    """Return one value of a nullable column as a float, NaN where it is missing."""
    return np.nan if pd.isna(value) else float(value)


def records(frame: pd.DataFrame) -> Iterator[Any]:
    """Go through the rows of a small table: ``row.column`` is a value."""
    yield from frame.itertuples(index=False)


def percent(part: ArrayLike, whole: float | None = None) -> pd.arrays.FloatingArray:
    """Return ``part`` in percent of ``whole`` (its own sum by default); NA where that is not positive."""
    values = np.asarray(part, dtype=np.float64)
    whole = float(np.nansum(values)) if whole is None else float(whole)
    if not whole > 0:
        return floats(np.full(len(values), np.nan))
    return floats(100.0 * values / whole)


def duration_columns(groups: Groups, durations: NDArray[np.int64]) -> dict[str, Any]:
    """Return calls, total_ns, mean_ns, median_ns, min_ns and max_ns of each group."""
    found = groups.statistics(durations)
    return {
        "calls": found.count,
        "total_ns": found.total,
        "mean_ns": found.mean,
        "median_ns": found.quantiles[0],
        "min_ns": found.minimum,
        "max_ns": found.maximum,
    }


def order(frame: pd.DataFrame, sort: str | None, top: int | None, ties: Sequence[str] = ()) -> pd.DataFrame:
    """Return the rows sorted by a column: numbers largest first, text from A to Z; at most ``top`` rows.

    Raises
    ------
    OptionError
        When there is no such column, or ``top`` is not a positive number.
    """
    if sort is not None:
        if sort not in frame.columns:
            raise OptionError("sort", sort, "one of the columns " + ", ".join(map(str, frame.columns)))
        number = pd.api.types.is_numeric_dtype(frame[sort].dtype)
        keys = [sort, *(tie for tie in ties if tie != sort)]
        ascending = [not number] + [True] * (len(keys) - 1)
        frame = frame.sort_values(keys, ascending=ascending, kind="stable", na_position="last")
    if top is not None:
        if not isinstance(top, int) or isinstance(top, bool) or top < 1:
            raise OptionError("top", top, "a number of rows, 1 or more, or None for all")
        frame = frame.head(top)
    return frame.reset_index(drop=True)
