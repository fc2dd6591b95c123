"""Which rows of ``trace.spans`` an analysis is about, as boolean masks over whole columns."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["among", "codes", "ends", "in_ns", "ints", "measured", "names_matching", "strings"]

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]

_FEW = 20


def codes(column: pd.Series) -> NDArray[Any]:
    """Return the category codes of a column, -1 where missing."""
    array: Any = column.array
    out: NDArray[Any] = array.codes
    return out


def among(column: pd.Series, values: Iterable[str]) -> Mask:
    """Say for each row whether its category is one of ``values``."""
    array: Any = column.array
    values = list(values)
    if len(array.categories) <= _FEW:
        known = array.categories.tolist()
        wanted = [known.index(value) for value in values if value in known]
    else:
        found = array.categories.get_indexer(pd.Index(values, dtype=object))
        wanted = found[found >= 0].tolist()
    if len(wanted) > _FEW:
        lookup = np.zeros(len(array.categories) + 1, bool)  # the last one stands for "missing"
        lookup[wanted] = True
        return np.asarray(lookup[array.codes])
    out: Mask = np.zeros(len(array), bool)
    # a few comparisons of whole columns take less time than one lookup per row
    for code in wanted:
        out |= array.codes == code
    return out


class Searcher(Protocol):
    """A compiled regular expression, or what searches a name as one does."""

    def search(self, name: str, /) -> re.Match[str] | None:
        """Return where the expression is found, None where it is not."""


def names_matching(column: pd.Series, pattern: Searcher, rows: Ints | None = None) -> Mask:
    """Say for each row (of ``rows``) whether a compiled regular expression is found in its category."""
    found = codes(column) if rows is None else codes(column)[rows]
    out: Mask = _matching(column.cat.categories, pattern, found)[found]
    return out


#: By the identity of an index of categories, which cannot change: which of them were looked at, and match.
_MATCHING: dict[int, tuple[weakref.ref[pd.Index], dict[Searcher, tuple[Mask, Mask]]]] = {}


def _matching(categories: pd.Index, pattern: Searcher, found: NDArray[Any]) -> Mask:
    """Say for each category that is found whether the pattern is in it; one more entry, for "missing"."""
    key = id(categories)
    held = _MATCHING.get(key)
    if held is None or held[0]() is not categories:
        held = _MATCHING[key] = (weakref.ref(categories, lambda _: _MATCHING.pop(key, None)), {})
    size = len(categories) + 1
    seen, wanted = held[1].setdefault(pattern, (np.zeros(size, bool), np.zeros(size, bool)))
    new = np.zeros(size, bool)
    new[found] = True
    new[-1] = False
    new &= ~seen
    if new.any():
        search, at = pattern.search, np.flatnonzero(new)
        wanted[at] = [search(str(name)) is not None for name in categories.take(at).to_numpy(dtype=object)]
        seen |= new
    return wanted


def measured(trace: TraceData) -> Mask:
    """Say for each span whether it has a real start and a real end."""
    return among(trace.spans["timing"], ("measured",))


def in_ns(trace: TraceData) -> Mask:
    """Say for each span whether its duration is in ns: not where a delegate counted another clock."""
    return ~among(trace.spans["timing"], ("ticks",))


def ints(column: pd.Series) -> Ints:
    """Return an integer column as int64; missing values (of aggregate records) become 0."""
    if column.dtype == np.int64:
        return column.to_numpy()
    return column.to_numpy(dtype=np.int64, na_value=0)


def ends(trace: TraceData) -> Ints:
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
