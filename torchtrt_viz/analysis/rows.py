"""Which rows of ``trace.spans`` an analysis is about, as boolean masks over whole columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.errors import OptionError
from torchtrt_viz.trace import Trace

__all__ = ["among", "codes", "ends", "ints", "measured", "names_matching", "strings"]

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


def codes(column: pd.Series) -> NDArray[Any]:
    """Return the category codes of a column, -1 where missing."""
    out: NDArray[Any] = column.cat.codes.to_numpy()
    return out


def among(column: pd.Series, values: Iterable[str]) -> Mask:
    """Say for each row whether its category is one of ``values``."""
    categories = list(column.cat.categories)
    wanted = np.zeros(len(categories) + 1, bool)  # the last one stands for "missing"
    for value in values:
        if value in categories:
            wanted[categories.index(value)] = True
    out: Mask = wanted[codes(column)]
    return out


def names_matching(column: pd.Series, pattern: Any) -> Mask:
    """Say for each row whether a compiled regular expression is found in its category."""
    categories = column.cat.categories
    wanted = np.zeros(len(categories) + 1, bool)
    wanted[:-1] = [pattern.search(str(name)) is not None for name in categories]
    out: Mask = wanted[codes(column)]
    return out


def measured(trace: Trace) -> Mask:
    """Say for each span whether it has a real start and a real end."""
    return among(trace.spans["timing"], ("measured",))


def ints(column: pd.Series) -> Ints:
    """Return an integer column as int64; missing values (of aggregate records) become 0."""
    if column.dtype == np.int64:
        return column.to_numpy()
    return column.to_numpy(dtype=np.int64, na_value=0)


def ends(trace: Trace) -> Ints:
    """Return the end of each span on the trace's base, in ns (meaningless for aggregate records)."""
    out: Ints = ints(trace.spans["start_ns"]) + trace.spans["dur_ns"].to_numpy()
    return out


def strings(column: pd.Series) -> NDArray[Any]:
    """Return a categorical column as an object array of str, None where missing."""
    categories = column.cat.categories.to_numpy(dtype=object)
    values = np.full(len(categories) + 1, None, dtype=object)
    values[:-1] = categories
    out: NDArray[Any] = values[codes(column)]
    return out


def choice(key: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` when it is one of ``choices``.

    Raises
    ------
    OptionError
        Otherwise, with the list.
    """
    allowed = tuple(choices)
    if value not in allowed:
        raise OptionError(key, value, "one of " + ", ".join(allowed))
    return value
