"""Arguments of events: their statistics, and what can be read out of them.

Details of kernels and copies are one text in the file; what torch.profiler records too has the key that it
has there (grid, block, bytes, ...), so that analyses find it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.xplane.stats import StatsOfEvents

__all__ = ["EventArgs"]

Ints = NDArray[np.int64]

_VECTOR = re.compile(r"(grid|block):(\d{1,10}),(\d{1,10}),(\d{1,10})")
_NUMBER = re.compile(r"(regs|static_shared|dynamic_shared|size|kind|occ_pct):([\w.]{1,20})")
_KERNEL = {"regs": "registers per thread", "dynamic_shared": "dynamic shared memory"}
_KERNEL |= {"static_shared": "static shared memory", "occ_pct": "est. achieved occupancy %"}
#: Keys that are made of one statistic -> its name.
_MADE = {
    **dict.fromkeys(("grid", "block", *_KERNEL.values()), "kernel_details"),
    **dict.fromkeys(("bytes", "kind"), "memcpy_details"),
    "module": "hlo_module",
}
_OWN = frozenset({"long_name", "duration_ps", "offset_ps", "occurrences"})
_LONGEST = 4096
_MOST_REGISTERS = 4096


def _number(text: str) -> int | float | None:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return None


def _from_details(found: dict[str, Any]) -> dict[str, Any]:
    """Read the texts in which XLA puts what CUPTI or ROCTracer said of a kernel or a copy."""
    out: dict[str, Any] = {}
    kernel, copy = found.get("kernel_details"), found.get("memcpy_details")
    if isinstance(kernel, str):
        kernel = kernel[:_LONGEST]
        for name, *numbers in _VECTOR.findall(kernel):
            out[name] = [int(number) for number in numbers]
        for name, value in _NUMBER.findall(kernel):
            number = _number(value)
            # the recorder writes 0 where it has no occupancy, and on AMD's GPUs may leave registers undefined
            if number is None or (name == "occ_pct" and number == 0):
                continue
            if name in _KERNEL and not (name == "regs" and number > _MOST_REGISTERS):
                out[_KERNEL[name]] = number
    if isinstance(copy, str):
        for name, value in _NUMBER.findall(copy[:_LONGEST]):
            if name == "size" and (size := _number(value)):
                out["bytes"] = size
            elif name == "kind":
                out["kind"] = value
    if isinstance(found.get("hlo_module"), str):
        out["module"] = found["hlo_module"]
    return out


class EventArgs:
    """Arguments of the rows of one frame.

    Parameters
    ----------
    events
        The event of each row.
    long_names
        Name of each event's description where another one is shown.
    times
        What the file says of each event's place, and its duration (ps).
    """

    def __init__(
        self,
        stats: StatsOfEvents,
        events: Ints,
        long_names: Sequence[str | None],
        times: tuple[NDArray[np.uint8], Ints, Ints],
    ) -> None:
        self._stats, self._events, self._long_names = stats, events, long_names
        self._place, self._at, self._dur_ps = times

    def read(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        return [self._one(int(row)) for row in rows]

    def _one(self, row: int) -> dict[str, Any]:
        event = int(self._events[row])
        kind = int(self._stats.kind[event])
        found = self._stats.shared.at(kind) if kind >= 0 else {}
        found |= self._stats.own.at(event)
        found = _from_details(found) | found
        if kind >= 0 and (long_name := self._long_names[kind]) is not None:
            found["long_name"] = long_name
        dur, at = int(self._dur_ps[event]), int(self._at[event])
        if dur % 1000 or dur < 0:
            found["duration_ps"] = dur
        if self._place[event] == 1 and at % 1000:
            found["offset_ps"] = at
        if self._place[event] == 2:
            found["occurrences"] = at
        return found

    def values(self, rows: NDArray[Any], key: str) -> tuple[Ints, list[Any]]:
        """Return one argument of many rows: a code per row (-1 none), and the value of each code."""
        events = self._events[rows]
        codes = np.full(len(rows), -1, np.int64)
        values: list[Any] = []
        if key not in _OWN:
            codes, values = self._stats.values(events, key)
        if key in _MADE:
            self._make(codes, values, events, key)
        slow: list[int] = np.flatnonzero(codes < 0).tolist() if key in _OWN else []
        for position in slow:
            found = self._one(int(rows[position]))
            if key in found:
                codes[position] = len(values)
                values.append(found[key])
        return codes, values

    def _make(self, codes: Ints, values: list[Any], events: Ints, key: str) -> None:
        """Read a key out of each distinct text that it is in, where the event has none of that name."""
        left = np.flatnonzero(codes < 0)
        of_text, texts = self._stats.values(events[left], _MADE[key])
        table = np.full(len(texts) + 1, -1, np.int64)
        for at, text in enumerate(texts):
            made = _from_details({_MADE[key]: text})
            if key in made:
                table[at] = len(values)
                values.append(made[key])
        codes[left] = table[of_text]
