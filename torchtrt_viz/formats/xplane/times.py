"""Picoseconds of a line as nanoseconds of the trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Times", "times_of"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Offsets and durations beyond 53 days are damage, and sums of them would leave 64 bits.
_LONGEST_PS = 1 << 62
_PLACE_OFFSET, _PLACE_OCCURRENCES = 1, 2
_LIMIT_NS = 1 << 62


@dataclass(frozen=True)
class Times:
    """Times of events.

    Attributes
    ----------
    start, dur
        ns; of aggregate events only ``dur`` means something.
    span, aggregate, invalid
        Events with a start and an end; sums over occurrences; those whose times cannot be.
    """

    start: Ints
    dur: Ints
    span: Mask
    aggregate: Mask
    invalid: Mask


def rounded(ps: Ints) -> Ints:
    """Return ps as the nearest whole ns, halves upwards: what was in order stays so."""
    out: Ints = (ps + 500) // 1000
    return out


def times_of(place: NDArray[np.uint8], at: Ints, dur_ps: Ints, timestamp_ns: Ints) -> Times:
    """Return the times of events, each with the time of its line.

    An event that says neither an offset nor how often it occurred begins with its line: 0 is not written.
    """
    aggregate = place == _PLACE_OCCURRENCES
    offset = np.where(place == _PLACE_OFFSET, at, 0)
    fits = (np.abs(offset) < _LONGEST_PS) & (offset != np.iinfo(np.int64).min)
    fits &= (dur_ps >= 0) & (dur_ps < _LONGEST_PS)
    fits &= (timestamp_ns > -_LIMIT_NS) & (timestamp_ns < _LIMIT_NS)
    offset, dur = np.where(fits, offset, 0), np.where(fits, dur_ps, 0)
    begin = rounded(offset)
    end = np.where(aggregate, begin + rounded(dur), rounded(offset + dur))
    start = np.where(fits, timestamp_ns, 0) + begin
    return Times(start, end - begin, fits & ~aggregate, fits & aggregate, ~fits)
