"""Devices that had nothing to do: why, and what that has to do with launches and waits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.intervals import IntervalSet, intersect, length, merge, subtract
from torchtrt_viz.analysis.core.masks import among, ends, ints, measured
from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.core.waiting import wait_mask
from torchtrt_viz.analysis.device.host_gpu_time import ACTIVITY
from torchtrt_viz.analysis.device.idle import idle_causes, idle_gaps
from torchtrt_viz.analysis.device.temporal import temporal_breakdown
from torchtrt_viz.analysis.findings.finding import Evidence, Finding, device_words, pct
from torchtrt_viz.model.schema import DOMAINS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["idle", "nothing_recorded", "waiting"]

Ints = NDArray[np.int64]

_REMEDY = {
    "host wait": "launch less often (CUDA graphs, larger batches, fused kernels), or take work off the host",
    "kernel wait": "fewer and larger kernels; CUDA graphs",
    "other": "look for events, streams and memory that the kernels wait for",
    "unknown": "record the host's side too (CPU activity)",
}
_WORDS = {
    "host wait": "because the host had not launched the next work yet",
    "kernel wait": "between kernels started back to back",
    "other": "although the next work had been launched",
    "unknown": "for a reason that the trace does not record",
}
_BASIS = {
    "host wait": "the idle time before work that the host launched late",
    "kernel wait": "the gaps between kernels, were they one graph or fewer kernels",
    "other": "the idle time before work that had been launched in time",
    "unknown": "the trace does not record why the device was idle",
}
_HEAD = {
    "host wait": "waiting for the host",
    "kernel wait": "between kernels",
    "other": "waiting for something else than the host",
    "unknown": "for an unknown reason",
}
_MARKED = 5_000  # gaps


def idle(trace: TraceData) -> Iterator[Finding]:
    """Idle time of each device, and its largest cause."""
    spans = temporal_breakdown(trace)
    causes = idle_causes(trace, level="device")
    gaps = idle_gaps(trace, level="device")
    for row in records(spans):
        whole = int(row.span_ns)
        same = causes["device"].isna() if pd.isna(row.device) else causes["device"] == row.device
        mine = causes[same.fillna(False)].sort_values("idle_ns", ascending=False)
        if not whole or not len(mine):
            continue
        worst = mine.iloc[0]
        lost, cause = int(worst["idle_ns"]), str(worst["cause"])
        number = None if pd.isna(row.device) else int(row.device)
        here = gaps["device"].isna() if number is None else gaps["device"] == number
        found = gaps[here.fillna(False) & (gaps["cause"] == cause)]
        query = f"cause == '{cause}'" + ("" if number is None else f" and device == {number}")
        yield Finding(
            f"{device_words(number)} was idle for {duration(row.idle_ns)} ({pct(row.idle_ns / whole)}) "
            f"between its first and last work, {duration(lost)} of it {_WORDS[cause]}.",
            float(lost),
            lost / whole,
            "the device's span",
            "gpu",
            'analysis.idle_causes(trace, level="device")',
            _REMEDY[cause],
            kind="idle",
            head=f"{'GPU' if number is None else f'GPU {number}'} idle {duration(row.idle_ns)}, "
            f"{pct(lost / int(row.idle_ns))} of it {_HEAD[cause]}",
            could_save_ns=None if cause == "unknown" else float(lost),
            basis=_BASIS[cause],
            evidence=_of_gaps(found),
            frame=f'trace.analysis.idle_gaps(level="device").query("{query}")'
            '.sort_values("dur_ns", ascending=False)',
        )


def _of_gaps(gaps: pd.DataFrame) -> Evidence:
    """Return the work that ended the gaps and the calls that launched it; the longest gap is looked at."""
    if not len(gaps):
        return Evidence()
    longest = gaps.sort_values("dur_ns", ascending=False, kind="stable").head(_MARKED)
    first = longest.iloc[0]
    launched = longest["launch_row"].dropna().to_numpy(dtype=np.int64)
    rows = np.unique(np.concatenate([longest["next_row"].to_numpy(dtype=np.int64), launched]))
    begin = int(first["start_ns"])
    worst = int(first["next_row"]) if pd.isna(first["launch_row"]) else int(first["launch_row"])
    return Evidence(rows, worst, (begin, begin + int(first["dur_ns"])))


def waiting(trace: TraceData) -> Iterator[Finding]:
    """Calls in which the host waits for a device, and how long the device then ran dry."""
    mask = np.flatnonzero(wait_mask(trace))
    whole = trace.duration_ns
    if not len(mask) or not whole:
        return
    start, end = ints(trace.spans["start_ns"])[mask], ends(trace)[mask]
    waits = merge(start, end)
    waited = length(waits)
    names = trace.spans["name"].iloc[mask].astype(str).value_counts()
    dry = _run_dry(trace, start, end)
    lost = length(dry)
    used = names.index[:8].tolist()
    yield Finding(
        f"A host thread waited for a device during {duration(waited)} ({pct(waited / whole)} of the "
        f"capture), in {count(len(mask), 'call')} such as {names.index[0]}.",
        float(waited),
        waited / whole,
        "the capture's length",
        "host",
        "trace.host_gpu()",
        "synchronise less often: avoid .item(), .cpu() and prints of tensors in the loop",
        kind="waiting",
        head=f"the host waits {duration(waited)} for a device, in {count(len(mask), 'call')}",
        could_save_ns=float(lost) if len(device_work(trace)) else None,
        basis=f"the device ran dry in these calls, and was idle for {duration(lost)} until the next launch"
        if len(device_work(trace))
        else "no work of a device was recorded",
        evidence=Evidence.of(trace, mask),
        frame=f'trace.spans[trace.spans["name"].isin({used!r})].sort_values("dur_ns", ascending=False)',
    )


def _run_dry(trace: TraceData, start: Ints, end: Ints) -> IntervalSet:
    """Return the idle time of devices, for want of launches, that began while the host waited for them."""
    gaps = idle_gaps(trace, level="device")
    gaps = gaps[gaps["cause"] == "host wait"]
    begin = gaps["start_ns"].to_numpy(dtype=np.int64)
    length_ = gaps["dur_ns"].to_numpy(dtype=np.int64)
    order = np.argsort(start, kind="stable")
    starts, reach = start[order], np.maximum.accumulate(end[order])
    at = np.searchsorted(starts, begin, side="right") - 1
    inside = (at >= 0) & (begin <= reach[np.maximum(at, 0)])
    return merge(begin[inside], begin[inside] + length_[inside])


def nothing_recorded(trace: TraceData) -> Iterator[Finding]:
    """Time of the capture in which neither the host nor a device did anything that was recorded."""
    spans = trace.spans
    here = measured(trace) & among(spans["domain"], DOMAINS)
    if not here.any():
        return
    start, end = ints(spans["start_ns"]), ends(trace)
    window = (np.array([start[here].min()]), np.array([end[here].max()]))
    whole = length(window)
    active = np.flatnonzero(here & among(spans["domain"], ("host",)) & among(spans["kind"], ACTIVITY))
    work = device_work(trace)
    busy = merge(np.concatenate([start[active], work.start]), np.concatenate([end[active], work.end]))
    holes = subtract(window, busy)
    empty = length(holes)
    if not whole or not empty:
        return
    lengths = holes[1] - holes[0]
    at = int(np.argmax(lengths))
    begin, stop = int(holes[0][at]), int(holes[1][at])
    around = np.flatnonzero(
        here
        & ~among(spans["kind"], ACTIVITY)
        & among(spans["domain"], ("host",))
        & (start <= begin)
        & (end >= stop)
    )
    inner = around[np.argmin((end - start)[around])] if len(around) else -1
    name = (
        f", the longest stretch ({duration(stop - begin)}) inside {spans['name'].iloc[inner]}"
        if inner >= 0
        else (f", the longest stretch {duration(stop - begin)}")
    )
    yield Finding(
        f"During {duration(empty)} ({pct(empty / whole)} of the capture) no operator, runtime call, delegate "
        f"or work of a device was recorded{name}.",
        float(empty),
        empty / whole,
        "the capture's length",
        "host",
        "trace.host_gpu()",
        "what runs there was not recorded: Python code, input, other processes; with_stack=True shows Python",
        kind="nothing recorded",
        head=f"nothing recorded for {duration(empty)}",
        basis="what ran there was not recorded",
        evidence=Evidence(
            around[np.argsort((end - start)[around], kind="stable")][:1].astype(np.int64),
            int(inner),
            (begin, stop),
        ),
        frame="trace.host_gpu()",
    )


def device_idle(trace: TraceData) -> IntervalSet:
    """Return when no device worked, between the first and the last work of all."""
    busy = device_work(trace).busy()
    if not len(busy[0]):
        return busy
    return subtract((busy[0][:1], busy[1][-1:]), busy)


def idle_during(trace: TraceData, rows: Ints) -> int:
    """Return how long no device worked while some of these host spans ran, in ns."""
    spans = merge(ints(trace.spans["start_ns"])[rows], ends(trace)[rows])
    return length(intersect(spans, device_idle(trace)))
