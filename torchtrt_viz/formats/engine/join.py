"""Layer times joined to layers.

By name, the nth of a name to the nth; by position where names are only numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Join", "join_names"]

_SEPARATORS = re.compile("[\x00-\x20]+")
_SHAPE_CALL = re.compile(r"^dummy_shape_call_?(?=__)")


@dataclass
class Join:
    """Result of `join_names`.

    Attributes
    ----------
    times
        For each layer the row of the times, -1 none.
    left
        Rows of the times that no layer has.
    how
        "name", "position" or "none".
    """

    times: list[int]
    left: list[int]
    how: str


def join_names(layers: Sequence[str], timed: Sequence[str]) -> Join:
    """Join layers to timed rows.

    Equal names join first; then names that differ only in control characters, blanks, or the prefix that
    the layer information alone gives to shape calls. Names that are only the numbers 0, 1, 2, ... (engines
    built with verbosity none) are positions.
    """
    if list(layers) == list(timed):
        return Join(list(range(len(timed))), [], "name" if timed else "none")
    times = [-1] * len(layers)
    if layers and timed and not set(timed) & set(layers) and all(_is_number(name) for name in timed):
        for row, name in enumerate(timed):
            index = int(name)
            if index < len(layers) and times[index] < 0:
                times[index] = row
        joined = set(times)
        return Join(times, [row for row in range(len(timed)) if row not in joined], "position")
    left = _match(list(layers), list(timed), times, list(range(len(timed))))
    if left and any(t < 0 for t in times):
        left = _match([_plain(n) for n in layers], [_plain(n) for n in timed], times, left)
    return Join(times, left, "name" if any(t >= 0 for t in times) else "none")


def _match(layers: list[str], timed: list[str], times: list[int], rows: list[int]) -> list[int]:
    """Fill ``times`` where it is -1 from ``rows``; return the rows that found no layer."""
    free: dict[str, list[int]] = {}
    for index in range(len(layers) - 1, -1, -1):
        if times[index] < 0:
            free.setdefault(layers[index], []).append(index)
    left = []
    for row in rows:
        places = free.get(timed[row])
        if places:
            times[places.pop()] = row
        else:
            left.append(row)
    return left


def _is_number(name: str) -> bool:
    return len(name) <= 9 and name.isascii() and name.isdigit()


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", _SHAPE_CALL.sub("", name)).replace("+", "")
