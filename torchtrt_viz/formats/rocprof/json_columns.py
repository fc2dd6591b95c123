"""Columns out of a list of records, each taken by one pass over the list; what is no number is missing."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["numbers", "records_of", "texts", "values_at"]

Ints = NDArray[np.int64]

_INT64 = (-(1 << 63), (1 << 63) - 1)


def records_of(found: Any) -> tuple[list[dict[str, Any]], int]:
    """Return the mappings of a list, and how many entries are none."""
    if not isinstance(found, list):
        return [], 0
    if set(map(type, found)) <= {dict}:
        return found, 0
    kept = [entry for entry in found if isinstance(entry, dict)]
    return kept, len(found) - len(kept)


def values_at(records: Sequence[Any], *path: str) -> list[Any]:
    """Return the value of each record at a path of keys; None where there is none."""
    values = list(records)
    for key in path:
        try:
            values = list(map(itemgetter(key), values))
        except (KeyError, TypeError, IndexError):
            values = [value.get(key) if isinstance(value, dict) else None for value in values]
    return values


def numbers(records: Sequence[Any], *path: str, missing: int = -1) -> Ints:
    """Return a column of whole numbers."""
    values = values_at(records, *path)
    if set(map(type, values)) <= {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            pass
    return np.array([_whole(value, missing) for value in values], np.int64)


def texts(records: Sequence[Any], *path: str) -> list[str | None]:
    """Return a column of texts."""
    return [value if isinstance(value, str) else None for value in values_at(records, *path)]


def _whole(value: Any, missing: int) -> int:
    """Take a number, or the text of one (addresses: "0x7f00")."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = int(value, 0)
        except ValueError:
            return missing
    if type(value) is int and _INT64[0] <= value <= _INT64[1]:
        return value
    return missing
