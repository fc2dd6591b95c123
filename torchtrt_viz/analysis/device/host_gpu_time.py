"""Host time and GPU time side by side, never added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.by_name import HOST_GPU
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.intervals import IntervalSet, intersect, length, merge, subtract
from torchtrt_viz.analysis.core.masks import among, ends, ints, measured
from torchtrt_viz.analysis.core.tables import floats, integers
from torchtrt_viz.analysis.core.waiting import enqueue_mask, launch_mask, wait_mask
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.schema import DOMAINS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["ACTIVITY", "host_gpu"]

Mask = NDArray[np.bool_]

ACTIVITY = ("method", "operator", "runtime", "delegate", "phase", "layer", "memory", "communication")

_MEANING = {
    "window": "from the first start to the last end of everything measured",
    "host busy": "some host thread was inside an operator, runtime call, delegate or method",
    "launch overhead": "some host thread was inside a call that puts work on a device's queue; it says "
    "nothing about how long that work took",
    "engine enqueue": "some host thread was inside the enqueue of a delegate's engine: launch overhead, not "
    "the time on the device; only an engine that runs on the host does its work there",
    "host waiting": "some host thread waited for a device",
    "gpu busy": "the device executed at least one kernel, copy or fill",
    "gpu idle": "the device executed nothing, between its first and its last piece of work",
    "gpu busy, host waiting": "the device worked while a host thread waited for it",
    "gpu idle, host busy": "the device had nothing to do while the host was busy: it waited to be fed",
    "gpu idle, host idle": "neither the device nor any recorded host work was active",
}


@returns(HOST_GPU)
def host_gpu(trace: TraceData) -> pd.DataFrame:
    """Host time and GPU time of a capture, side by side.

    Every duration is the length of a union of intervals: threads and streams that work at the same time
    count once. Rows describe overlapping views of one time axis and must not be added to each other; above
    all, host time and GPU time are never added.

    Returns
    -------
    pandas.DataFrame
        One row per view of the capture's time, host and GPU side by side.

    Examples
    --------
    >>> tv.analysis.host_gpu(trace)["domain"].unique().tolist()
    ['both', 'host', 'gpu']
    """
    spans = trace.spans
    start, end = ints(spans["start_ns"]), ends(trace)
    # what is of no known domain may be in another unit, or on another clock
    here = measured(trace) & among(spans["domain"], DOMAINS)
    rows: list[dict[str, Any]] = []

    def add(
        measure: str, domain: str, found: IntervalSet | None, count: int | None, device: int = -1
    ) -> None:
        rows.append(
            {
                "measure": measure,
                "domain": domain,
                "device": device,
                "ns": None if found is None else length(found),
                "spans": count,
                "meaning": _MEANING[measure],
            }
        )

    def when(mask: Mask) -> tuple[IntervalSet | None, int | None]:
        chosen = np.flatnonzero(mask)
        if len(chosen) == 0:
            return None, None
        return merge(start[chosen], end[chosen]), len(chosen)

    window = (
        None
        if not here.any()
        else (np.array([start[here].min()], np.int64), np.array([end[here].max()], np.int64))
    )
    add("window", "both", window, int(here.sum()) if window else None)
    # only outermost spans matter to a union: those without a parent, or whose parent is of another sort
    host, host_count = when(here & among(spans["domain"], ("host",)) & among(spans["kind"], ACTIVITY))
    add("host busy", "host", host, host_count)
    add("launch overhead", "host", *when(launch_mask(trace)))
    add("engine enqueue", "host", *when(enqueue_mask(trace)))
    waiting, wait_count = when(wait_mask(trace))
    add("host waiting", "host", waiting, wait_count)

    work = device_work(trace)
    if len(work) == 0:
        add("gpu busy", "gpu", None, None)
        add("gpu idle", "gpu", None, None)
    for device in work.devices():
        part = work.of(work.device == device)
        busy = part.busy()
        extent = (busy[0][:1], busy[1][-1:])
        idle = subtract(extent, busy)
        add("gpu busy", "gpu", busy, len(part), device)
        add("gpu idle", "gpu", idle, None, device)
        if waiting is not None:
            add("gpu busy, host waiting", "both", intersect(busy, waiting), None, device)
        if host is not None:
            working = host if waiting is None else subtract(host, waiting)
            add("gpu idle, host busy", "both", intersect(idle, working), None, device)
            add("gpu idle, host idle", "both", subtract(idle, host), None, device)
    return _frame(rows)


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    def column(name: str) -> pd.arrays.IntegerArray:
        values = [row[name] for row in rows]
        return integers([v or 0 for v in values], [v is not None and v >= 0 for v in values])

    window = rows[0]["ns"]
    ns = [np.nan if row["ns"] is None else float(row["ns"]) for row in rows]
    return pd.DataFrame(
        {
            "measure": [row["measure"] for row in rows],
            "domain": [row["domain"] for row in rows],
            "device": column("device"),
            "ns": column("ns"),
            "pct": floats(100.0 * np.array(ns) / window if window else np.full(len(ns), np.nan)),
            "spans": column("spans"),
            "meaning": [row["meaning"] for row in rows],
        }
    )
