"""Copies and fills: how much, which way, how fast."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import COPIES, COPY_BANDWIDTH
from torchtrt_viz.analysis.core.device_work import DeviceWork, device_work
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.intervals import length, merge
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import strings
from torchtrt_viz.analysis.core.tables import floats, integers, text
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["DIRECTIONS", "copies", "copy_bandwidth"]

Ints = NDArray[np.int64]

DIRECTIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("host to device", re.compile(r"HtoD|^H2D|HOST_TO_DEVICE|HostToDevice", re.I)),
    ("device to host", re.compile(r"DtoH|^D2H|DEVICE_TO_HOST|DeviceToHost", re.I)),
    ("peer to peer", re.compile(r"PtoP|PEER", re.I)),
    ("device to device", re.compile(r"DtoD|DEVICE_TO_DEVICE|DeviceToDevice|CopyBuffer|copyBuffer", re.I)),
    ("fill", re.compile(r"Memset|fillBuffer", re.I)),
)


def direction_of(name: str) -> str:
    """Return which way a copy goes, by its name; "unknown"."""
    return next((label for label, pattern in DIRECTIONS if pattern.search(name)), "unknown")


def _sized(trace: TraceData) -> tuple[DeviceWork, NDArray[Any], Ints]:
    work = device_work(trace)
    work = work.of(work.is_class("copy", "fill"))
    names = strings(trace.spans["name"])[work.row]
    sizes = _sizes(trace.args.read(work.row), "bytes", "Bytes")
    unknown = np.flatnonzero(sizes < 0)
    if len(unknown):
        # some runtimes record the size with the call that makes the copy
        host = launches(trace, work.of(sizes < 0)).host
        known = host >= 0
        if known.any():
            # of a call that made several copies nobody knows how much each of them moved
            known &= (np.bincount(host[known], minlength=len(trace.spans)) == 1)[np.maximum(host, 0)]
        sizes[unknown[known]] = _sizes(trace.args.read(host[known]), "size")
    return work, names, sizes


def _sizes(details: list[dict[str, Any]], *keys: str) -> Ints:
    """Return the size that each event records, -1 for none."""
    out = np.full(len(details), -1, np.int64)
    for position, found in enumerate(details):
        value = next((found[key] for key in keys if key in found), None)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62:
            out[position] = value
    return out


@returns(COPIES)
def copies(trace: TraceData) -> pd.DataFrame:
    """Copies and fills by direction and memory.

    Returns
    -------
    pandas.DataFrame
        One row per device, direction and name of copies and fills.

    Examples
    --------
    >>> tv.analysis.copies(trace)[["direction", "calls"]].to_dict("records")
    [{'direction': 'host to device', 'calls': 4}]
    """
    work, names, sizes = _sized(trace)
    groups = Groups.by(
        {"device": work.device, "direction": text([direction_of(str(n)) for n in names]), "name": names}
    )
    known = sizes >= 0
    total = groups.total(work.dur)
    sized = groups.count(known)
    moved = groups.total(sizes, known)
    sized_ns = groups.total(work.dur, known)
    busy = [
        length(merge(work.start[groups.codes == group], work.end[groups.codes == group]))
        for group in range(groups.size)
    ]
    device = groups.labels["device"].to_numpy(dtype=np.int64)
    frame = groups.labels.assign(
        device=integers(device, device >= 0),
        calls=groups.count(),
        bytes=integers(moved, sized > 0),
        sized_calls=sized,
        total_ns=total,
        busy_ns=np.array(busy, dtype=np.int64),
        mean_ns=total / np.maximum(groups.count(), 1),
        gbps=floats(moved / np.where(sized_ns > 0, sized_ns, np.nan), sized > 0),
    )
    return frame.sort_values("total_ns", ascending=False, kind="stable").reset_index(drop=True)


@returns(COPY_BANDWIDTH)
def copy_bandwidth(trace: TraceData) -> pd.DataFrame:
    """Bandwidth of copies and fills over time, as a step function per device and direction.

    Each copy counts with its own mean bandwidth from its start to its end; copies that overlap add up.

    Returns
    -------
    pandas.DataFrame
        One row per change of the bandwidth of copies, per device and direction.

        Copies without a recorded size, or without duration, are left out.

    Examples
    --------
    >>> list(tv.analysis.copy_bandwidth(trace).columns)
    ['device', 'direction', 'ts_ns', 'gbps']
    """
    work, names, sizes = _sized(trace)
    use = (sizes >= 0) & (work.dur > 0)
    work, names, sizes = work.of(use), names[use], sizes[use]
    rate = sizes / np.maximum(work.dur, 1)
    lanes = Groups.by({"device": work.device, "direction": text([direction_of(str(n)) for n in names])})
    parts = []
    for lane in range(lanes.size):
        mine = lanes.codes == lane
        when = np.concatenate((work.start[mine], work.end[mine]))
        step = np.concatenate((rate[mine], -rate[mine]))
        running = np.concatenate((np.ones(int(mine.sum())), -np.ones(int(mine.sum()))))
        order = np.argsort(when, kind="stable")
        when, level, active = when[order], np.cumsum(step[order]), np.cumsum(running[order])
        last = np.append(when[1:] != when[:-1], True)
        parts.append(
            pd.DataFrame(
                {
                    "device": int(lanes.labels["device"].iloc[lane]),
                    "direction": str(lanes.labels["direction"].iloc[lane]),
                    "ts_ns": when[last],
                    "gbps": np.where(active[last] > 0, level[last], 0.0),
                }
            )
        )
    if not parts:
        return COPY_BANDWIDTH.typed(pd.DataFrame(columns=COPY_BANDWIDTH.names))
    frame = pd.concat(parts, ignore_index=True)
    device = frame["device"].to_numpy(dtype=np.int64)
    return frame.assign(device=integers(device, device >= 0))
