"""Why a stream, or a whole device, had nothing to do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.groups import Groups
from torchtrt_viz.analysis.links import launches
from torchtrt_viz.analysis.rows import choice, ints
from torchtrt_viz.analysis.tables import floats, integers, text
from torchtrt_viz.trace import Trace

__all__ = ["CAUSES", "idle_causes", "idle_gaps"]

Ints = NDArray[np.int64]

CAUSES = ("host wait", "kernel wait", "other", "unknown")


def idle_gaps(trace: Trace, *, level: str = "stream", kernel_wait_ns: int = 30_000) -> pd.DataFrame:
    """Every gap between pieces of device work, with its cause.

    Parameters
    ----------
    level
        ``stream``: gaps within each stream; ``device``: times at which the whole device was idle.
    kernel_wait_ns
        Gaps shorter than this, before work that had been launched in time, are what it takes to start
        work back to back.

    Returns
    -------
    pandas.DataFrame
        ``device``
            Device index; NA where the trace does not say.
        ``stream``
            Label of the stream; missing for ``level="device"``.
        ``start_ns``, ``dur_ns``
            When the gap began, on the trace's base, and how long it was, ns.
        ``cause``
            host wait: the work that ended the gap was launched only after the gap began, the host did not
            keep the device fed; kernel wait: it was launched in time, and the gap is shorter than
            ``kernel_wait_ns``; other: launched in time, yet the gap is longer (it waited for an event,
            another stream, memory, ...); unknown: its launch is not in the trace.
        ``next_row``
            Row of ``trace.spans`` of the work that ended the gap.
        ``launch_row``
            Row of the host span that launched it; -1 unknown.
    """
    choice("level", level, ("stream", "device"))
    found = launches(trace)
    work = found.work
    lane = work.track.astype(np.int64) if level == "stream" else work.device
    order = np.lexsort((work.end, work.start, lane))
    lane, start, end = lane[order], work.start[order], work.end[order]
    first = np.ones(len(order), bool)
    first[1:] = lane[1:] != lane[:-1]
    reach = _running_end(end, first)
    gap = np.zeros(len(order), np.int64)
    gap[1:] = np.where(first[1:], 0, start[1:] - reach[:-1])
    at = np.flatnonzero(gap > 0)

    host = found.host[order][at]
    launched = ints(trace.spans["start_ns"])[np.maximum(host, 0)]
    began = reach[at - 1]
    late = launched > began
    cause = np.where(late, 0, np.where(gap[at] < kernel_wait_ns, 1, 2))
    cause = np.where(host < 0, 3, cause)
    chosen = order[at]
    device = work.device[chosen]
    labels = trace.tracks["label"].to_numpy(dtype=object)[work.track[chosen]]
    if level == "device":
        labels = np.full(len(labels), None, dtype=object)
    return pd.DataFrame(
        {
            "device": integers(device, device >= 0),
            "stream": labels,
            "start_ns": began,
            "dur_ns": gap[at],
            "cause": pd.Categorical.from_codes(cause, categories=pd.Index(CAUSES)),
            "next_row": work.row[chosen],
            "launch_row": host,
        }
    )


def _running_end(end: Ints, first: NDArray[np.bool_]) -> Ints:
    """Return the largest end so far within each lane (entries are ordered by lane)."""
    out = end.copy()
    bounds = [*np.flatnonzero(first).tolist(), len(end)]
    for begin, stop in pairwise(bounds):
        np.maximum.accumulate(out[begin:stop], out=out[begin:stop])
    return out


def idle_causes(trace: Trace, *, level: str = "stream", kernel_wait_ns: int = 30_000) -> pd.DataFrame:
    """Idle time by cause.

    Parameters
    ----------
    level, kernel_wait_ns
        As in :func:`idle_gaps`, which also says what the causes mean.

    Returns
    -------
    pandas.DataFrame
        ``device``, ``stream``
            As in :func:`idle_gaps`.
        ``cause``
            host wait, kernel wait, other or unknown.
        ``gaps``
            Number of gaps.
        ``idle_ns``
            Their total length, ns.
        ``idle_pct``
            In percent of the stream's (or device's) idle time.
        ``median_ns``, ``max_ns``
            Length of a gap, ns.
    """
    gaps = idle_gaps(trace, level=level, kernel_wait_ns=kernel_wait_ns)
    device = gaps["device"].to_numpy(dtype=np.int64, na_value=-1)
    groups = Groups.by({"device": device, "stream": text(gaps["stream"].to_list()), "cause": gaps["cause"]})
    found = groups.statistics(gaps["dur_ns"].to_numpy())
    frame = groups.labels.assign(gaps=found.count, idle_ns=found.total)
    whole = frame.groupby(["device", "stream"], dropna=False)["idle_ns"].transform("sum")
    frame = frame.assign(
        idle_pct=floats(100.0 * frame["idle_ns"].to_numpy() / whole.to_numpy(dtype=float)),
        median_ns=found.quantiles[0],
        max_ns=found.maximum,
    )
    known: Any = frame["device"].to_numpy(dtype=np.int64)
    frame["device"] = integers(known, known >= 0)
    return frame
