"""Counters as lanes: the lowest and the highest value of each pixel column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torchtrt_viz.scene.scene import Part

__all__ = ["CounterSeries", "counter_series"]


@dataclass(frozen=True)
class CounterSeries:
    """One counter on one track: ``value`` holds from ``ts_ns`` (scene clock, sorted) until the next one."""

    name: str
    unit: str
    label: str
    ts_ns: NDArray[np.int64]
    value: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Return what the front end needs to draw the lane's frame."""
        finite = self.value[np.isfinite(self.value)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
        return {"name": self.name, "unit": self.unit, "label": self.label, "low": low, "high": high}

    def view(self, t0: int, t1: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the lowest and highest value of every pixel column; NaN before the first sample."""
        edges = np.array([t0 + (t1 - t0) * k // width for k in range(width + 1)], np.int64)
        at = np.searchsorted(self.ts_ns, edges, side="right")  # samples at or before each edge
        low = np.full(width, np.nan, np.float32)
        high = np.full(width, np.nan, np.float32)
        first, last = at[:-1], np.searchsorted(self.ts_ns, edges[1:], side="left")
        begin = np.maximum(first - 1, 0)  # the value that already holds when the column begins
        some = last > begin
        if some.any():
            # reduceat over [begin, last): pairs of indices, of which every second result is meant
            pairs = np.empty(2 * int(some.sum()), np.int64)
            pairs[0::2], pairs[1::2] = begin[some], last[some]
            padded = np.append(self.value, np.nan)
            low[some] = np.fmin.reduceat(padded, pairs)[0::2]
            high[some] = np.fmax.reduceat(padded, pairs)[0::2]
        return low, high


def counter_series(parts: list[Part]) -> list[CounterSeries]:
    """Return the counters of every trace, by track and name, in the order of the frames."""
    out = []
    for part in parts:
        counters = part.trace.counters
        if counters.empty:
            continue
        labels = part.trace.tracks["label"].tolist()
        names = counters["name"].cat.categories
        tracks, codes = counters["track"].to_numpy(), counters["name"].cat.codes.to_numpy()
        series = np.unique(np.stack([tracks, codes.astype(np.int64)], axis=1), axis=0)
        for track, code in series.tolist():
            some = counters[(tracks == track) & (codes == code)]
            name = names[code] if code >= 0 else ""
            ts = some["ts_ns"].to_numpy() + part.shift_ns
            order = np.argsort(ts, kind="stable")
            unit = some["unit"].iloc[0]
            label = str(labels[int(track)]) if 0 <= int(track) < len(labels) else ""
            out.append(
                CounterSeries(
                    name=str(name),
                    unit="" if unit != unit or unit is None else str(unit),
                    label=" · ".join(word for word in (part.label, label) if word),
                    ts_ns=ts[order],
                    value=some["value"].to_numpy()[order],
                )
            )
    return out
