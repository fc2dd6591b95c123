"""How much work waits between host and device, over time."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import BLOCKED_ON_FULL_QUEUE, QUEUE_LENGTH, QUEUE_SUMMARY
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import ints
from torchtrt_viz.analysis.core.tables import floats, integers
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["QUEUE_LIMIT", "blocked_on_full_queue", "queue_length", "queue_summary"]

Ints = NDArray[np.int64]

QUEUE_LIMIT = 1024  # launches that a CUDA stream holds before a launch blocks


@returns(QUEUE_LENGTH)
def queue_length(trace: TraceData) -> pd.DataFrame:
    """Number of launches that wait on each stream, as a step function.

    It grows by one when the host begins a launch and falls by one when the device begins the work (for a
    graph: the first piece of it on that stream). Work whose launch is not in the trace is left out; work
    that seems to begin before its launch, because clocks differ, counts as begun at once.

    Returns
    -------
    pandas.DataFrame
        One row per change of the number of launches that wait on a stream.

    Examples
    --------
    >>> lengths = tv.analysis.queue_length(trace)
    >>> int(lengths["length"].iloc[-1])
    0
    """
    found = _lengths(trace)
    device = trace.tracks["device"].to_numpy(dtype=np.int64, na_value=-1)[found.track]
    return pd.DataFrame(
        {
            "device": integers(device, device >= 0),
            "stream": trace.tracks["label"].to_numpy(dtype=object)[found.track],
            "track": found.track,
            "ts_ns": found.when,
            "length": found.length,
        }
    )


class _Lengths(NamedTuple):
    """The columns of the step function, and how many launches each track has."""

    track: Ints
    when: Ints
    length: Ints
    launches: Ints

    def streams(self) -> list[tuple[int, slice]]:
        """Return the tracks with launches, and where each one's rows are."""
        bounds = np.flatnonzero(np.diff(self.track, prepend=-1, append=-1))
        return [(int(self.track[a]), slice(int(a), int(b))) for a, b in pairwise(bounds)]


def _lengths(trace: TraceData) -> _Lengths:
    track, called, begin = _launched(trace)
    when = np.concatenate((called, begin))
    step = np.repeat([1, -1], len(called))
    lane = np.concatenate((track, track))
    # at one time, launches come before starts: they do in `when`, and sorting is stable
    ordered = np.argsort(when, kind="stable")
    ordered = ordered[np.argsort(lane[ordered], kind="stable")]
    lane, when, step = lane[ordered], when[ordered], step[ordered]
    running = np.cumsum(step)
    # every stream's steps add up to nothing, so the running sum starts from 0 at each
    last = np.ones(len(lane), bool)
    last[:-1] = (lane[1:] != lane[:-1]) | (when[1:] != when[:-1])
    counted = np.bincount(track, minlength=len(trace.tracks))
    return _Lengths(lane[last].astype(np.int64), when[last], running[last], counted)


def _launched(trace: TraceData) -> tuple[NDArray[np.int32], Ints, Ints]:
    """Return track, time of launch and time of start of every launch on every stream."""
    found = launches(trace)
    known = found.host >= 0
    track, host, begin = found.work.track[known], found.host[known], found.work.start[known]
    if len(host) and np.bincount(host - host.min()).max() > 1:
        # of the work that one call put on one stream only the first counts; work is ordered by start
        key = track.astype(np.int64) * (len(trace.spans) + 1) + host
        order = np.argsort(key, kind="stable")
        first = order[np.diff(key[order], prepend=-1) != 0]
        track, host, begin = track[first], host[first], begin[first]
    called = ints(trace.spans["start_ns"])[host]
    return track, called, np.maximum(begin, called)


@returns(QUEUE_SUMMARY)
def queue_summary(trace: TraceData) -> pd.DataFrame:
    """Length of each stream's queue, weighted by how long it lasted.

    Returns
    -------
    pandas.DataFrame
        One row per stream: how much work waited.

    Examples
    --------
    >>> tv.analysis.queue_summary(trace)[["stream", "launches"]].to_dict("records")
    [{'stream': 'stream 7', 'launches': 240}]
    """
    found = _lengths(trace)
    device = trace.tracks["device"].to_numpy(dtype=np.int64, na_value=-1)
    rows = []
    for track, mine in found.streams():
        dur, length = np.diff(found.when[mine]), found.length[mine]
        # how long the queue had each length: lengths are few
        weights = np.bincount(length[:-1], weights=dur)
        total, values = weights.sum(), np.arange(len(weights))
        reach = np.cumsum(weights)
        quantiles = [float(np.searchsorted(reach, q * total)) if total > 0 else np.nan for q in (0.5, 0.95)]
        rows.append(
            {
                "device": device[track],
                "stream": trace.tracks["label"].iloc[track],
                "launches": int(found.launches[track]),
                "mean": float((weights * values).sum() / total) if total > 0 else np.nan,
                "median": quantiles[0],
                "p95": quantiles[1],
                "max": int(length.max()),
                "empty_pct": 100.0 * float(weights[values == 0].sum() / total) if total > 0 else np.nan,
            }
        )
    frame = pd.DataFrame(rows, columns=QUEUE_SUMMARY.names)
    known = frame["device"].to_numpy(dtype=np.int64)
    frame["device"] = integers(known, known >= 0)
    for name in ("mean", "median", "p95", "empty_pct"):
        frame[name] = floats(frame[name].to_numpy(dtype=np.float64))
    return QUEUE_SUMMARY.typed(frame)


@returns(BLOCKED_ON_FULL_QUEUE)
def blocked_on_full_queue(trace: TraceData, *, limit: int = QUEUE_LIMIT) -> pd.DataFrame:
    """Time in which a stream's queue was full, so that a launch had to wait for a place.

    Parameters
    ----------
    limit
        Launches that a queue holds.

    Returns
    -------
    pandas.DataFrame
        One row per stream with launches: time in which its queue was full.

    Examples
    --------
    >>> tv.analysis.blocked_on_full_queue(trace, limit=1024)["full_ns"].tolist()
    [0]
    """
    found = _lengths(trace)
    device = trace.tracks["device"].to_numpy(dtype=np.int64, na_value=-1)
    whole = trace.duration_ns
    rows = []
    for track, mine in found.streams():
        full = int(np.diff(found.when[mine])[found.length[mine][:-1] >= limit].sum())
        rows.append((device[track], trace.tracks["label"].iloc[track], full))
    frame = pd.DataFrame(rows, columns=["device", "stream", "full_ns"])
    known = frame["device"].to_numpy(dtype=np.int64)
    frame["device"] = integers(known, known >= 0)
    share = 100.0 * frame["full_ns"].to_numpy(dtype=np.float64) / whole if whole else np.nan
    frame["full_pct"] = floats(np.broadcast_to(np.asarray(share), (len(frame),)))
    return BLOCKED_ON_FULL_QUEUE.typed(frame)
