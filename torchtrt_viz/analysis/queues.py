"""How much work waits between host and device, over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.links import launches
from torchtrt_viz.analysis.rows import ints
from torchtrt_viz.analysis.tables import floats, integers
from torchtrt_viz.trace import Trace

__all__ = ["QUEUE_LIMIT", "blocked_on_full_queue", "queue_length", "queue_summary"]

Ints = NDArray[np.int64]

QUEUE_LIMIT = 1024  # launches that a CUDA stream holds before a launch blocks


def queue_length(trace: Trace) -> pd.DataFrame:
    """Number of launches that wait on each stream, as a step function.

    It grows by one when the host begins a launch and falls by one when the device begins the work (for a
    graph: the first piece of it on that stream). Work whose launch is not in the trace is left out; work
    that seems to begin before its launch, because clocks differ, counts as begun at once.

    Returns
    -------
    pandas.DataFrame
        ``device``
            Device index; NA where the trace does not say.
        ``stream``
            Label of the stream; ``track`` is its row of ``trace.tracks``.
        ``ts_ns``
            Time of the change, on the trace's base; rows are ordered by stream, then time.
        ``length``
            Launches that wait from this time on.
    """
    track, called, begin = _launched(trace)
    when = np.concatenate((called, begin))
    step = np.concatenate((np.ones(len(called), np.int64), -np.ones(len(begin), np.int64)))
    lane = np.concatenate((track, track))
    ordered = np.lexsort((-step, when, lane))  # at one time, launches before starts
    lane, when, step = lane[ordered], when[ordered], step[ordered]
    running = np.cumsum(step)
    opens = np.ones(len(lane), bool)
    opens[1:] = lane[1:] != lane[:-1]
    # every stream's steps add up to nothing, so the running sum starts from 0 at each
    last = np.ones(len(lane), bool)
    last[:-1] = (lane[1:] != lane[:-1]) | (when[1:] != when[:-1])
    lane, when, running = lane[last], when[last], running[last]
    device = trace.tracks["device"].to_numpy(dtype=np.int64, na_value=-1)[lane]
    return pd.DataFrame(
        {
            "device": integers(device, device >= 0),
            "stream": trace.tracks["label"].to_numpy(dtype=object)[lane],
            "track": lane,
            "ts_ns": when,
            "length": running,
        }
    )


def _launched(trace: Trace) -> tuple[Ints, Ints, Ints]:
    """Return track, time of launch and time of start of every launch on every stream."""
    found = launches(trace)
    known = found.host >= 0
    track = found.work.track[known].astype(np.int64)
    host, begin = found.host[known], found.work.start[known]
    # of the work that one call put on one stream only the first counts; work is ordered by start
    _, first = np.unique(track * (len(trace.spans) + 1) + host, return_index=True)
    called = ints(trace.spans["start_ns"])[host[first]]
    return track[first], called, np.maximum(begin[first], called)


def _steps(series: pd.DataFrame) -> tuple[Ints, Ints, Ints]:
    """Return track, length and duration of every step but each stream's last."""
    track, ts = series["track"].to_numpy(), series["ts_ns"].to_numpy()
    length = series["length"].to_numpy()
    same = track[1:] == track[:-1]
    return track[:-1][same], length[:-1][same], np.diff(ts)[same]


def queue_summary(trace: Trace) -> pd.DataFrame:
    """Length of each stream's queue, weighted by how long it lasted.

    Returns
    -------
    pandas.DataFrame
        ``device``, ``stream``
            As in :func:`queue_length`.
        ``launches``
            Launches counted.
        ``mean``, ``median``, ``p95``
            Length over time, between the stream's first launch and its last start.
        ``max``
            Longest queue.
        ``empty_pct``
            Share of that time in which nothing waited.
    """
    series = queue_length(trace)
    track, length, dur = _steps(series)
    launched = np.bincount(_launched(trace)[0], minlength=len(trace.tracks))
    rows = []
    for lane, part in series.groupby("track", sort=True):
        mine = track == lane
        weights, values = dur[mine].astype(np.float64), length[mine]
        total = weights.sum()
        by_length = np.argsort(values, kind="stable")
        reach = np.cumsum(weights[by_length])
        quantiles = [
            values[by_length][min(int(np.searchsorted(reach, q * total)), len(values) - 1)]
            if total > 0
            else np.nan
            for q in (0.5, 0.95)
        ]
        rows.append(
            {
                "device": part["device"].iloc[0],
                "stream": part["stream"].iloc[0],
                "launches": int(launched[part["track"].iloc[0]]),
                "mean": float((weights * values).sum() / total) if total > 0 else np.nan,
                "median": quantiles[0],
                "p95": quantiles[1],
                "max": int(part["length"].max()),
                "empty_pct": 100.0 * float(weights[values == 0].sum() / total) if total > 0 else np.nan,
            }
        )
    frame = pd.DataFrame(
        rows, columns=["device", "stream", "launches", "mean", "median", "p95", "max", "empty_pct"]
    )
    for name in ("mean", "median", "p95", "empty_pct"):
        frame[name] = floats(frame[name].to_numpy(dtype=np.float64))
    return frame


def blocked_on_full_queue(trace: Trace, *, limit: int = QUEUE_LIMIT) -> pd.DataFrame:
    """Time in which a stream's queue was full, so that a launch had to wait for a place.

    Parameters
    ----------
    limit
        Launches that a queue holds.

    Returns
    -------
    pandas.DataFrame
        ``device``, ``stream``
            As in :func:`queue_length`; every stream with launches has a row.
        ``full_ns``
            Time with ``limit`` or more launches waiting, ns.
        ``full_pct``
            In percent of the capture's length (first start to last end of everything measured).
    """
    series = queue_length(trace)
    track, length, dur = _steps(series)
    whole = trace.duration_ns
    rows = []
    for lane, part in series.groupby("track", sort=True):
        full = int(dur[(track == lane) & (length >= limit)].sum())
        rows.append((part["device"].iloc[0], part["stream"].iloc[0], full))
    frame = pd.DataFrame(rows, columns=["device", "stream", "full_ns"])
    share = 100.0 * frame["full_ns"].to_numpy(dtype=np.float64) / whole if whole else np.nan
    frame["full_pct"] = floats(np.broadcast_to(np.asarray(share), (len(frame),)))
    return frame
