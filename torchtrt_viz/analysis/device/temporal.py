"""How a device spent its time: computing, communicating, copying, idle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.device import KERNEL_TYPES, OVERLAP, TEMPORAL_BREAKDOWN
from torchtrt_viz.analysis.core.device_work import DeviceWork, device_work
from torchtrt_viz.analysis.core.tables import floats, integers
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["kernel_types", "overlap", "temporal_breakdown"]


@returns(TEMPORAL_BREAKDOWN)
def temporal_breakdown(trace: TraceData, *, per_device: bool = True) -> pd.DataFrame:
    """Break a device's time down into compute, communication, copies and idle.

    The time between the first start and the last end of device work is divided without remainder:
    ``compute + exposed_communication + exposed_copy + idle == span``. Streams that work at the same time
    count once (unions, not sums of durations).

    Parameters
    ----------
    per_device
        One row per device; False takes all devices of the trace as one.

    Returns
    -------
    pandas.DataFrame
        One row per device, its time divided into compute, communication, copies and idle.

        No row when the trace holds no device work.

    Examples
    --------
    >>> row = tv.analysis.temporal_breakdown(trace).loc[0]
    >>> bool(row["busy_ns"] + row["idle_ns"] == row["span_ns"])
    True
    """
    work = device_work(trace)
    if len(work) == 0:
        parts: list[tuple[int, DeviceWork]] = []
    elif per_device:
        devices = work.devices()
        parts = [(d, work if len(devices) == 1 else work.of(work.device == d)) for d in devices]
    else:
        parts = [(-1, work)]
    rows = [_break_down(device, part) for device, part in parts]
    columns = ["device", *_NS, *_PCT, "kernels"]
    return pd.DataFrame(
        {
            name: floats([row[name] for row in rows])
            if name in _PCT
            else integers(values := [row[name] for row in rows], np.asarray(values) >= 0)
            for name in columns
        }
    )


_NS = (
    "span_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "communication_ns",
    "copy_ns",
    "exposed_communication_ns",
    "exposed_copy_ns",
    "overlapped_communication_ns",
    "non_compute_ns",
)
_PCT = ("compute_pct", "exposed_communication_pct", "exposed_copy_pct", "idle_pct")


#: Classes of work as bits of a pattern: which of them run at one time.
_BITS: dict[str, tuple[str, ...]] = {
    "compute": ("compute",),
    "communication": ("communication",),
    "copy": ("copy", "fill"),
}


def _patterns(work: DeviceWork) -> list[int]:
    """Return the time in which exactly the classes of a pattern ran, for each of the eight, in ns."""
    sets = [work.busy(*names) for names in _BITS.values()]
    when = np.concatenate([edge for found in sets for edge in found])
    step = np.repeat(
        [sign * (1 << bit) for bit in range(len(sets)) for sign in (1, -1)],
        [len(edge) for found in sets for edge in found],
    )
    order = np.argsort(when, kind="stable")  # the parts are in order: this merges them
    running, lasted = np.cumsum(step[order])[:-1], np.diff(when[order])
    return [int(lasted[running == pattern].sum()) for pattern in range(8)]


def _break_down(device: int, work: DeviceWork) -> dict[str, Any]:
    time = _patterns(work)
    compute, communication, copy = (
        sum(time[pattern] for pattern in range(8) if pattern >> bit & 1) for bit in range(3)
    )
    span = int(work.end.max() - work.start.min())
    busy = sum(time[1:])
    row: dict[str, Any] = {
        "device": device,
        "span_ns": span,
        "busy_ns": busy,
        "idle_ns": span - busy,
        "compute_ns": compute,
        "communication_ns": communication,
        "copy_ns": copy,
        "exposed_communication_ns": time[0b010] + time[0b110],
        "exposed_copy_ns": time[0b100],
        "overlapped_communication_ns": time[0b011] + time[0b111],
        "kernels": len(work),
    }
    row["non_compute_ns"] = row["exposed_communication_ns"] + row["exposed_copy_ns"]
    for name in _PCT:
        row[name] = 100.0 * row[name.removesuffix("_pct") + "_ns"] / span if span else np.nan
    return row


@returns(OVERLAP)
def overlap(trace: TraceData) -> pd.DataFrame:
    """How much communication is hidden under computation, per device.

    Returns
    -------
    pandas.DataFrame
        One row per device: communication hidden under computation.

        No row when the trace holds no device work.

    Examples
    --------
    >>> row = tv.analysis.overlap(trace).loc[0]
    >>> bool(row["overlapped_ns"] + row["exposed_ns"] == row["communication_ns"])
    True
    """
    table = temporal_breakdown(trace)
    total = table["communication_ns"].to_numpy(dtype=np.float64)
    hidden = table["overlapped_communication_ns"].to_numpy(dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, 100.0 * hidden / total, np.nan)
    return pd.DataFrame(
        {
            "device": table["device"],
            "communication_ns": table["communication_ns"],
            "overlapped_ns": table["overlapped_communication_ns"],
            "exposed_ns": table["exposed_communication_ns"],
            "overlap_pct": floats(share),
        }
    )


@returns(KERNEL_TYPES)
def kernel_types(trace: TraceData) -> pd.DataFrame:
    """Device time by class of work, apart and overlapping.

    Each instant of busy device time belongs to exactly one row: computation alone, computation and
    communication together, and so on. Copies and fills form one class.

    Returns
    -------
    pandas.DataFrame
        One row per device and set of classes that ran together.

    Examples
    --------
    >>> tv.analysis.kernel_types(trace)["classes"].head(1).tolist()
    ['compute']
    """
    work = device_work(trace)
    rows: list[tuple[int, str, int]] = []
    for device in work.devices():
        part = work if len(work.devices()) == 1 else work.of(work.device == device)
        for pattern, time in enumerate(_patterns(part)):
            if pattern and time:
                names = [name for bit, name in enumerate(_BITS) if pattern >> bit & 1]
                rows.append((device, " + ".join(names), time))
    frame = pd.DataFrame(rows, columns=["device", "classes", "ns"])
    devices = frame["device"].to_numpy(dtype=np.int64)
    busy = frame.groupby("device")["ns"].transform("sum").to_numpy(dtype=np.float64)
    frame["pct"] = floats(100.0 * frame["ns"].to_numpy(dtype=np.float64) / np.where(busy > 0, busy, np.nan))
    frame["device"] = integers(devices, devices >= 0)
    order = frame.assign(unknown=devices).sort_values(
        ["unknown", "ns"], ascending=[True, False], kind="stable"
    )
    return KERNEL_TYPES.typed(frame.loc[order.index].reset_index(drop=True))
