"""Memory over time, its peaks, and who allocated it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.analysis.columns.memory_use import MEMORY, MEMORY_BY_OPERATOR, MEMORY_PEAKS
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.masks import among, ints, measured, strings
from torchtrt_viz.analysis.core.tables import integers, order, text
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["memory", "memory_by_operator", "memory_peaks"]

Ints = NDArray[np.int64]

_TOTALS = re.compile(r"^(allocated|reserved) memory/(.+)$")
_PORTION = 50_000


@returns(MEMORY)
def memory(trace: TraceData) -> pd.DataFrame:
    """Memory over time, as a step function per device.

    Returns
    -------
    pandas.DataFrame
        One row per change of the memory in use, by device, then time.

        No row when the capture did not record memory (torch.profiler's ``profile_memory=True``).

    Examples
    --------
    >>> list(tv.analysis.memory(trace).columns)
    ['ts_ns', 'device', 'allocated_bytes', 'reserved_bytes', 'delta_bytes']
    """
    parts = [_totals(trace), _program(trace)]
    frame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    allocated = frame["allocated_bytes"].to_numpy(dtype=np.int64)
    device = frame["device"].to_numpy(dtype=object)
    change = np.zeros(len(frame), np.int64)
    change[1:] = np.diff(allocated)
    same = np.zeros(len(frame), bool)
    same[1:] = device[1:] == device[:-1]
    return frame.assign(delta_bytes=integers(change, same))


def _totals(trace: TraceData) -> pd.DataFrame:
    """Totals that the allocator of torch recorded."""
    counters = trace.counters
    columns = {"ts_ns": [np.zeros(0, np.int64)], "device": [np.zeros(0, object)]}
    allocated: list[Any] = [np.zeros(0, np.int64)]
    reserved: list[Any] = [np.zeros(0)]
    names = counters["name"].cat.categories
    codes = counters["name"].cat.codes.to_numpy()
    series: dict[str, dict[str, int]] = {}
    for code, name in enumerate(names):
        found = _TOTALS.match(str(name))
        if found:
            series.setdefault(found[2], {})[found[1]] = code
    ts, value = counters["ts_ns"].to_numpy(), counters["value"].to_numpy()
    for device in sorted(series):
        rows = np.flatnonzero(codes == series[device].get("allocated", -2))
        held = np.flatnonzero(codes == series[device].get("reserved", -2))
        paired = len(held) == len(rows) and np.array_equal(ts[held], ts[rows])
        order_of = np.argsort(ts[rows], kind="stable")
        columns["ts_ns"].append(ts[rows][order_of])
        columns["device"].append(np.full(len(rows), device, dtype=object))
        allocated.append(value[rows][order_of].astype(np.int64))
        reserved.append(value[held][order_of] if paired else np.full(len(rows), np.nan))
    kept = np.concatenate(reserved)
    return pd.DataFrame(
        {
            "ts_ns": np.concatenate(columns["ts_ns"]),
            "device": np.concatenate(columns["device"]),
            "allocated_bytes": np.concatenate(allocated),
            "reserved_bytes": integers(np.nan_to_num(kept), ~np.isnan(kept)),
        }
    )


def _program(trace: TraceData) -> pd.DataFrame:
    """Allocations that an ExecuTorch program logged: each adds to its allocator, none is ever freed."""
    found = (trace.meta.get("etdump") or {}).get("allocations")
    empty = pd.DataFrame({"ts_ns": [], "device": [], "allocated_bytes": [], "reserved_bytes": integers([])})
    if found is None or len(found) == 0:
        return empty
    table = found.sort_values(["allocator", "ts_ns"], kind="stable")
    return pd.DataFrame(
        {
            "ts_ns": table["ts_ns"].to_numpy(dtype=np.int64),
            "device": table["allocator"].astype(object).to_numpy(),
            "allocated_bytes": table.groupby("allocator")["bytes"].cumsum().to_numpy(dtype=np.int64),
            "reserved_bytes": integers(np.zeros(len(table)), False),
        }
    )


@returns(MEMORY_PEAKS)
def memory_peaks(trace: TraceData) -> pd.DataFrame:
    """Peaks of memory, one row per device.

    Returns
    -------
    pandas.DataFrame
        One row per device: most memory in use.

    Examples
    --------
    >>> tv.analysis.memory_peaks(trace)["device"].tolist()
    []
    """
    table = memory(trace)
    rows: list[dict[str, Any]] = []
    for device, part in table.groupby("device", sort=False):
        allocated = part["allocated_bytes"].to_numpy(dtype=np.int64)
        held = part["reserved_bytes"]
        at = int(np.argmax(allocated))
        rows.append(
            {
                "device": device,
                "peak_allocated_bytes": int(allocated[at]),
                "peak_at_ns": int(part["ts_ns"].iloc[at]),
                "peak_reserved_bytes": held.max(),
                "unused_at_peak_bytes": held.iloc[at] - int(allocated[at]),
                "first_bytes": int(allocated[0]),
                "last_bytes": int(allocated[-1]),
                "events": len(part),
            }
        )
    return MEMORY_PEAKS.typed(pd.DataFrame(rows, columns=MEMORY_PEAKS.names))


@returns(MEMORY_BY_OPERATOR)
def memory_by_operator(
    trace: TraceData, *, sort: str | None = "allocated_bytes", top: int | None = None
) -> pd.DataFrame:
    """Allocations and releases by the innermost operator that made them.

    Parameters
    ----------
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`.

    Returns
    -------
    pandas.DataFrame
        One row per device and innermost operator that allocated or released.

        Needs the single events of torch.profiler (``profile_memory=True``); no row without them.

    Examples
    --------
    >>> tv.analysis.memory_by_operator(trace, top=1)["operator"].tolist()
    ['aten::add']
    """
    instants = trace.instants
    rows = np.flatnonzero(among(instants["kind"], ("memory",)) & (strings(instants["name"]) == "[memory]"))
    amounts = np.zeros(len(rows), np.int64)
    devices = np.full(len(rows), "", dtype=object)
    for begin in range(0, len(rows), _PORTION):
        for offset, found in enumerate(trace.instant_args.read(rows[begin : begin + _PORTION]), begin):
            amounts[offset] = _integer(found.get("Bytes"))
            number = _integer(found.get("Device Id"))
            devices[offset] = "cpu" if _integer(found.get("Device Type")) == 0 else f"cuda:{number}"
    owner = _innermost(trace, instants["track"].to_numpy()[rows], instants["ts_ns"].to_numpy()[rows])
    names = strings(trace.spans["name"])
    operator = np.full(len(rows), None, dtype=object)
    operator[owner >= 0] = names[owner[owner >= 0]]
    groups = Groups.by({"device": devices, "operator": text(operator)})
    positive = amounts > 0
    allocated = groups.total(amounts, positive)
    released = -groups.total(amounts, amounts < 0)
    frame = groups.labels.assign(
        allocations=groups.count(positive),
        allocated_bytes=allocated,
        releases=groups.count(amounts < 0),
        released_bytes=released,
        net_bytes=allocated - released,
    )
    return order(frame, sort, top, ("device", "operator"))


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 else 0


def _innermost(trace: TraceData, track: NDArray[Any], ts: Ints) -> Ints:
    """Return the row of the innermost operator on the same thread at each time, -1 none."""
    spans = trace.spans
    rows = np.flatnonzero(
        among(spans["kind"], ("operator",)) & among(spans["domain"], ("host",)) & measured(trace)
    )
    if not len(rows):
        return np.full(len(ts), -1, np.int64)
    parent, _, _, _ = native("columns").nest(
        np.concatenate((spans["track"].to_numpy()[rows], track.astype(np.int32))),
        np.concatenate((ints(spans["start_ns"])[rows], ts)),
        np.concatenate((spans["dur_ns"].to_numpy()[rows], np.zeros(len(ts), np.int64))),
    )
    # of events at one time the later may lie "inside" the earlier
    above = nearest(parent, np.arange(len(parent)) < len(rows))[len(rows) :]
    out: Ints = np.where(above >= 0, rows[np.minimum(np.maximum(above, 0), len(rows) - 1)], -1)
    return out
