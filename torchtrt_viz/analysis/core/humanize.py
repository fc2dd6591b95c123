"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

__all__ = ["count", "duration", "listing", "share", "size"]


def duration(ns: Any) -> str:
    """Write a duration with three significant digits and a unit that suits it."""
    if ns is None or ns is pd.NA:
        return "an unknown time"
    value = float(ns)
    for limit, unit, factor in ((1e3, "ns", 1.0), (1e6, "µs", 1e3), (1e9, "ms", 1e6)):
        if abs(value) < limit:
            return f"{value / factor:.3g} {unit}"
    seconds = value / 1e9
    return f"{seconds:.3g} s" if abs(seconds) < 1000 else f"{seconds:,.0f} s"


def size(count_of_bytes: Any) -> str:
    """Write a size in bytes with a decimal unit."""
    if count_of_bytes is None or count_of_bytes is pd.NA:
        return "an unknown size"
    value = float(count_of_bytes)
    for limit, unit, factor in ((1e3, "B", 1.0), (1e6, "kB", 1e3), (1e9, "MB", 1e6), (1e12, "GB", 1e9)):
        if abs(value) < limit:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e12:.3g} TB"


def share(part: float | int, whole: float | int | None) -> str:
    """Write a part of a whole in percent."""
    if not whole:
        return "an unknown share"
    return f"{100.0 * float(part) / float(whole):.3g} %"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun."""
    word = noun if number == 1 else plural or noun + "s"
    return f"{number:,} {word}"


def listing(items: Iterable[str], limit: int = 3) -> str:
    """Write at most ``limit`` items, and how many more there are."""
    found = list(items)
    text = "; ".join(found[:limit])
    more = len(found) - limit
    return f"{text}; and {more:,} more" if more > 0 else text
