"""Why a stream, or a whole device, had nothing to do."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import IDLE_CAUSES, IDLE_GAPS
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import choice, ints
from torchtrt_viz.analysis.core.tables import floats, integers, text
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["CAUSES", "idle_causes", "idle_gaps"]

Ints = NDArray[np.int64]

CAUSES = ("host wait", "kernel wait", "other", "unknown")


@returns(IDLE_GAPS)
def idle_gaps(trace: TraceData, *, level: str = "stream", kernel_wait_ns: int = 30_000) -> pd.DataFrame:
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
        One row per gap between pieces of device work, with its cause.

    Examples
    --------
    >>> len(tv.analysis.idle_gaps(trace, level="device")) > 0
    True
    """
    found = _gaps(trace, level, kernel_wait_ns)
    labels = trace.tracks["label"].to_numpy(dtype=object)[found.track]
    if level == "device":
        labels = np.full(len(labels), None, dtype=object)
    return pd.DataFrame(
        {
            "device": integers(found.device, found.device >= 0),
            "stream": labels,
            "start_ns": found.began,
            "dur_ns": found.dur,
            "cause": pd.Categorical.from_codes(found.cause, categories=pd.Index(CAUSES)),
            "next_row": found.row,
            "launch_row": integers(found.host, found.host >= 0),
        }
    )


class _Gaps(NamedTuple):
    """Columns of gaps, ordered by stream (or device), then by time; ``cause`` is a position in `CAUSES`."""

    device: Ints
    track: NDArray[np.int32]
    began: Ints
    dur: Ints
    cause: NDArray[np.int8]
    row: Ints
    host: Ints


def _gaps(trace: TraceData, level: str, kernel_wait_ns: int) -> _Gaps:
    choice("level", level, ("stream", "device"))
    found = launches(trace)
    work = found.work
    lane = work.track.astype(np.int64) if level == "stream" else work.device
    order = np.argsort(lane, kind="stable")  # work is ordered by start and end, and stays so in each lane
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
    cause = np.where(host < 0, 3, cause).astype(np.int8)
    chosen = order[at]
    return _Gaps(work.device[chosen], work.track[chosen], began, gap[at], cause, work.row[chosen], host)


def _running_end(end: Ints, first: NDArray[np.bool_]) -> Ints:
    """Return the largest end so far within each lane (entries are ordered by lane)."""
    out = end.copy()
    bounds = [*np.flatnonzero(first).tolist(), len(end)]
    for begin, stop in pairwise(bounds):
        np.maximum.accumulate(out[begin:stop], out=out[begin:stop])
    return out


@returns(IDLE_CAUSES)
def idle_causes(trace: TraceData, *, level: str = "stream", kernel_wait_ns: int = 30_000) -> pd.DataFrame:
    """Idle time by cause.

    Parameters
    ----------
    level, kernel_wait_ns
        As in :func:`idle_gaps`, which also says what the causes mean.

    Returns
    -------
    pandas.DataFrame
        One row per stream (or device) and cause of idle time.

    Examples
    --------
    >>> tv.analysis.idle_causes(trace, level="device")["cause"].tolist()
    ['kernel wait', 'unknown']
    """
    gaps = _gaps(trace, level, kernel_wait_ns)
    # streams are told apart by label, in the order of their tracks
    labels = text(trace.tracks["label"].to_list() if level == "stream" else [None] * len(trace.tracks))
    label, names = pd.factorize(labels)
    groups = Groups.by(
        {
            "device": gaps.device,
            "stream": pd.Categorical.from_codes(label[gaps.track], categories=pd.Index(names)),
            "cause": pd.Categorical.from_codes(gaps.cause, categories=pd.Index(CAUSES)),
        }
    )
    found = groups.statistics(gaps.dur)
    device, stream = groups.labels["device"].to_numpy(dtype=np.int64), groups.labels["stream"]
    lanes = list(zip(device.tolist(), stream.tolist(), strict=True))
    whole: Counter[Any] = Counter()
    for lane, idle in zip(lanes, found.total.tolist(), strict=True):
        whole[lane] += idle
    return pd.DataFrame(
        {
            "device": integers(device, device >= 0),
            "stream": stream,
            "cause": groups.labels["cause"],
            "gaps": found.count,
            "idle_ns": found.total,
            "idle_pct": floats(100.0 * found.total / np.array([whole[lane] for lane in lanes], dtype=float)),
            "median_ns": found.quantiles[0],
            "max_ns": found.maximum,
        }
    )
