"""Axes: which numbers they show, and where a value lies on them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torchtrt_viz.charts.chart import Axis
from torchtrt_viz.charts.written import byte_size, duration, number

__all__ = ["Scale", "written"]


def written(value: float, unit: str) -> str:
    """Return a value of an axis with its unit."""
    if value == 0:
        return "0"
    if unit == "ns":
        return duration(value)
    if unit == "byte":
        return byte_size(value)
    return f"{number(value)} {unit}".strip()


@dataclass(frozen=True)
class Scale:
    """An axis with its ends; `at` gives the place of a value as a share of the axis, 0 to 1."""

    axis: Axis
    low: float
    high: float

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float], margin: float = 0.03) -> Scale:
        """Return a scale that shows all values, with some room at its ends."""
        some = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
        if not some:
            return cls(axis, 1.0 if axis.log else 0.0, 10.0 if axis.log else 1.0)
        low, high = min(some), max(some)
        if axis.log:
            if high / low < 4:  # less than that shows no number on the axis
                low, high = low / 2, high * 2
            room = (high / low) ** margin
            return cls(axis, low / room, high * room)
        if axis.zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high == low:
            high = low + 1.0
        room = (high - low) * margin
        return cls(axis, low if axis.zero and low == 0 else low - room, high + room)

    def at(self, value: float) -> float:
        """Return where a value lies, 0 at the low end and 1 at the high one."""
        if self.axis.log:
            if value <= 0:
                return 0.0
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, about: int) -> list[float]:
        """Return round numbers along the axis, about so many."""
        if self.axis.log:
            return self._decades(about)
        if self.axis.unit == "ns" or not self.axis.unit:
            step = _round_step((self.high - self.low) / about)
        elif self.axis.unit == "byte":
            power = 1024 ** max(0, math.floor(math.log(max((self.high - self.low) / about, 1), 1024)))
            step = _round_step((self.high - self.low) / about / power) * power
        else:
            step = _round_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, first + 3 * about) if k * step <= self.high * (1 + 1e-12)]

    def _decades(self, about: int) -> list[float]:
        base = 1024.0 if self.axis.unit == "byte" else 10.0
        first, last = math.ceil(_log(self.low, base)), math.floor(_log(self.high, base))
        if last - first + 1 < 2:
            marks = (1, 4, 16, 64, 256) if base == 1024.0 else (1, 2, 5)
            found = [m * base**k for k in range(first - 1, last + 1) for m in marks]
            found = [value for value in found if self.low <= value <= self.high]
            return found[:: max(1, math.ceil(len(found) / about))]
        every = max(1, math.ceil((last - first + 1) / about))
        return [base**k for k in range(first, last + 1, every)]


def _log(value: float, base: float) -> float:
    return math.log(value) / math.log(base)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(least, 1e-12)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)
