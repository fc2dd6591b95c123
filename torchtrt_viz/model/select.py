"""Part of a trace as a trace, with its links kept whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchtrt_viz.model.args import Args
from torchtrt_viz.model.optional_ints import filled, optional_ints
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Subset", "renumber", "select"]


class Subset:
    """Arguments of some rows of another trace."""

    def __init__(self, args: Args, rows: np.ndarray) -> None:
        self._args = args
        self._rows = rows

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        return self._args.read(self._rows[rows])


def renumber(links: np.ndarray, new_row: np.ndarray) -> np.ndarray:
    """Map row numbers through ``new_row`` (old row -> new row, -1 dropped); -1 stays -1."""
    out = np.full(len(links), -1, np.int64)
    known = links >= 0
    out[known] = new_row[links[known]]
    return out


def select(trace: TraceData, mask: Any) -> TraceData:
    """Return a trace of the spans where ``mask`` is true, or of the given rows in order.

    Where a parent is left out ``parent`` becomes -1, where an end of a flow is, that end becomes NA; flows
    with neither end are dropped.
    Depth and self time keep the values of the whole trace.
    """
    array = np.asarray(mask)
    rows = np.flatnonzero(array) if array.dtype == bool else array.astype(np.int64)
    if array.dtype == bool and len(array) != len(trace.spans):
        raise ValueError(f"mask has {len(array)} values for {len(trace.spans)} spans")
    new_row = np.full(len(trace.spans), -1, np.int64)
    new_row[rows] = np.arange(len(rows))
    spans = trace.spans.iloc[rows].reset_index(drop=True)
    spans["parent"] = renumber(spans["parent"].to_numpy(), new_row)
    flows = trace.flows.copy()
    if len(flows):
        ends = {end: renumber(filled(flows[end]), new_row) for end in ("source", "target")}
        for end, links in ends.items():
            flows[end] = optional_ints(links)
        flows = flows[(ends["source"] >= 0) | (ends["target"] >= 0)].reset_index(drop=True)
    out = TraceData(
        spans=spans,
        tracks=trace.tracks,
        instants=trace.instants,
        counters=trace.counters,
        flows=flows,
        meta=dict(trace.meta),
        args=Subset(trace.args, rows),
    )
    out.instant_args = trace.instant_args
    return out
