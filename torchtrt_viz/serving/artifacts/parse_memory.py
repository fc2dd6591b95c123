"""Allocations and releases of a recording, and the operators that they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.model.trace_data import TraceData

__all__ = ["allocations", "innermost"]

Ints = NDArray[np.int64]


def innermost(trace: TraceData, rows: Ints, track: Ints, ts: Ints) -> Ints:
    """Return for each moment on a track the innermost of the spans ``rows`` that lasts then; -1 for none."""
    spans = trace.spans
    start = spans["start_ns"].to_numpy(dtype="int64", na_value=0)
    end = start + spans["dur_ns"].to_numpy()
    parent = spans["parent"].to_numpy()
    wanted = np.zeros(len(spans) + 1, bool)
    wanted[rows] = True
    out = np.full(len(ts), -1, np.int64)
    on = spans["track"].to_numpy()
    for number in np.unique(track):
        here = np.flatnonzero((on == number) & (spans["timing"] == "measured").to_numpy())
        here = here[np.lexsort((-end[here], start[here]))]  # of spans that start together, the inner one last
        at = np.flatnonzero(track == number)
        position = np.searchsorted(start[here], ts[at], side="right") - 1
        found = np.where(position >= 0, here[np.maximum(position, 0)] if len(here) else -1, -1)
        while True:
            climb = (found >= 0) & ((end[found] <= ts[at]) | ~wanted[found])
            if not climb.any():
                break
            found[climb] = parent[found[climb]]
        out[at] = found
    return out


def allocations(trace: TraceData, rows: Ints) -> pd.DataFrame:
    """Every allocation and release.

    Parameters
    ----------
    rows
        Spans that they may belong to.

    Returns
    -------
    pandas.DataFrame
        ``ts_ns``, ``track``, ``device``, ``delta_bytes`` (negative: released), ``allocated_bytes``,
        ``reserved_bytes`` (totals after it; NA where not recorded), ``owner`` (row of the innermost span it
        happened in, -1 none). In order of time.
    """
    instants = trace.instants
    is_memory = (instants["kind"] == "memory") & (instants["name"] == "[memory]")
    memory = np.flatnonzero(is_memory.to_numpy())
    details = trace.instant_args.read(memory)
    ts = instants["ts_ns"].to_numpy()[memory]
    track = instants["track"].to_numpy()[memory].astype(np.int64)
    frame = pd.DataFrame(
        {
            "ts_ns": ts,
            "track": track,
            "device": [_device(d) for d in details],
            "delta_bytes": _whole(details, "Bytes"),
            "allocated_bytes": _whole(details, "Total Allocated"),
            "reserved_bytes": _whole(details, "Total Reserved"),
            "owner": innermost(trace, rows, track, ts),
        }
    )
    return frame.sort_values("ts_ns", kind="stable").reset_index(drop=True)


_DEVICES = {0: "cpu", 1: "cuda", 12: "xpu", 13: "mps", 18: "hpu", 19: "mtia", 20: "privateuse"}


def _device(details: dict[str, Any]) -> str:
    kind, number = details.get("Device Type"), details.get("Device Id")
    name = _DEVICES.get(kind, f"device-type-{kind}") if isinstance(kind, int) else "unknown"
    return f"{name}:{number}" if isinstance(number, int) and number >= 0 else name


def _whole(details: list[dict[str, Any]], key: str) -> pd.Series:
    values = [d.get(key) for d in details]
    return pd.Series([v if isinstance(v, int) else pd.NA for v in values], dtype="Int64")
