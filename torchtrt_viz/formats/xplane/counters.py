"""Counters of a TPU: lines whose events are values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.formats.xplane.stats import StatsOfEvents
from torchtrt_viz.formats.xplane.times import Times
from torchtrt_viz.model import schema

if TYPE_CHECKING:
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

__all__ = ["counters_of"]

_VALUE = "counter_value"


def counters_of(
    stats: StatsOfEvents,
    name: Ints,
    texts: list[str],
    times: Times,
    candidates: Mask,
    track: NDArray[np.int32],
    rank: int,
) -> tuple[pd.DataFrame, Mask]:
    """Return ``trace.counters`` and which events it is of: those of ``candidates`` that have a value."""
    code = stats.code(_VALUE)
    value = stats.own.reals(code)
    counted = candidates & ~np.isnan(value)
    rows = np.flatnonzero(counted)
    frame = schema.COUNTERS.frame(
        {
            "name": [texts[each] for each in name[rows].tolist()],
            "track": track[rows],
            "ts_ns": times.start[rows],
            "value": value[rows],
            "rank": rank,
        },
        len(rows),
    )
    return frame, counted
