"""From the host to the device: calls that cost more than they start, work that waits in a queue."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.intervals import cover, length, merge
from torchtrt_viz.analysis.core.links import launches, operator_rows, operators_of
from torchtrt_viz.analysis.core.masks import among, ints, measured, names_matching
from torchtrt_viz.analysis.core.readable import shortened
from torchtrt_viz.analysis.core.waiting import launch_mask
from torchtrt_viz.analysis.device.critical import critical_path, critical_path_summary
from torchtrt_viz.analysis.device.launch import launch_delays, launch_stats
from torchtrt_viz.analysis.findings.finding import Evidence, Finding, pct
from torchtrt_viz.analysis.findings.idle import idle_during
from torchtrt_viz.analysis.findings.patterns import ALLOCATION
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["allocations", "launching", "on_the_path", "queueing"]

Ints = NDArray[np.int64]

_SEGMENTS = {
    "host": "host time",
    "launch delay": "delay between launch and start",
    "compute": "computing on the device",
    "communication": "communication between devices",
    "copy": "copies",
    "fill": "fills of memory",
    "kernel gap": "gaps between kernels",
    "unexplained gap": "gaps that nothing explains",
    "stream wait": "waits for other streams",
    "synchronisation": "calls that wait for the device",
}
_PATH_LIMIT = 400_000  # pieces of device work; following the path through more takes seconds


def launching(trace: TraceData) -> Iterator[Finding]:
    """Launches that take the host longer than their work takes the device."""
    table = launch_stats(trace)
    if not len(table):
        return
    short, calls = int(table["short"].sum()), int(table["calls"].sum())
    spans = trace.spans
    delays = launch_delays(trace)
    rows = delays["host_row"].to_numpy()
    start = ints(spans["start_ns"])[rows]
    # threads may launch at the same time, and a driver's call lies inside the runtime's
    cost = length(merge(start, start + spans["dur_ns"].to_numpy()[rows]))
    whole = trace.duration_ns
    # two standard errors above a half, or the next run may show the opposite
    if whole and short > calls / 2 + calls**0.5:
        mine = rows[(delays["device_ns"] < delays["host_ns"]).to_numpy()]
        yield Finding(
            f"{short:,} of {count(calls, 'launch', 'launches')} took the host longer than the work took the "
            f"device; launching cost the host {duration(cost)}.",
            float(cost),
            min(1.0, cost / whole),
            "the capture's length",
            "host",
            "analysis.launch_stats(trace)",
            "CUDA graphs, fused kernels, larger batches",
            kind="launches",
            head=f"{pct(short / calls)} of the launches take longer than the work that they start",
            could_save_ns=float(idle_during(trace, rows)),
            basis="time in launching calls while no device worked",
            evidence=Evidence.of(trace, mine),
            frame="trace.analysis.launch_stats()",
        )


def queueing(trace: TraceData) -> Iterator[Finding]:
    """The work that waited longest between its launch and its start, and who launched it."""
    table = launch_delays(trace)
    whole = trace.duration_ns
    if not len(table) or not whole:
        return
    delay = table["delay_ns"].to_numpy(dtype=np.int64)
    # work that seems to begin before its launch: the two clocks differ by as much, and delays mean little
    early = int(max(0, -table["queued_ns"].min()))
    at = int(np.argmax(delay))
    longest = int(delay[at])
    if longest <= 10 * early or longest <= 0:
        return
    row = table.iloc[at]
    work_row, host_row = int(row["row"]), int(row["host_row"])
    linked = launches(trace)
    owners = operators_of(trace, linked, operator_rows(trace))
    owner = int(owners[np.flatnonzero(linked.work.row == work_row)[0]])
    spans = trace.spans
    begin = int(ints(spans["start_ns"])[host_row])
    start = int(ints(spans["start_ns"])[work_row])
    work = device_work(trace)
    same = work.of(work.track == int(spans["track"].iloc[work_row]))
    ahead = int(((same.end > begin) & (same.start < start)).sum())
    idle_share = 1.0 - length(merge(np.maximum(same.start, begin), np.minimum(same.end, start))) / max(
        1, start - begin
    )
    by = f", launched by {spans['name'].iloc[owner]}" if owner >= 0 else ""
    name = shortened(str(spans["name"].iloc[work_row]), 48)
    median = float(np.median(delay))
    basis = (
        "the device was busy with earlier work meanwhile: only less work for the device makes this shorter"
        if idle_share < 0.1
        else "what it waited for is not recorded"
    )
    yield Finding(
        f"{name}{by}, began {duration(longest)} after its launch returned, behind {count(ahead, 'piece')} of "
        f"work in its stream; the median delay of {count(len(table), 'launch', 'launches')} is "
        f"{duration(median)}.",
        float(longest),
        longest / whole,
        "the capture's length",
        "gpu",
        "analysis.launch_delays(trace)",
        "where the device is the limit, the host has time to spare; where it is not, look for events and "
        "streams that the work waits for",
        kind="queueing",
        head=f"longest launch delay {duration(longest)}: {name}{by}",
        basis=basis,
        evidence=Evidence(
            np.array([host_row, work_row]), work_row, (begin, start + int(spans["dur_ns"].iloc[work_row]))
        ),
        frame='trace.analysis.launch_delays().sort_values("delay_ns", ascending=False)',
    )


def on_the_path(trace: TraceData) -> Iterator[Finding]:
    """What the critical path consists of most."""
    work = device_work(trace)
    if not len(work) or len(work) > _PATH_LIMIT or not launch_mask(trace).any():
        return
    path = critical_path(trace)
    table = critical_path_summary(trace, path)
    table = table[table["segment"] != "host idle"]
    if not len(table):
        return
    by_segment = table.groupby("segment", observed=True)["total_ns"].sum().sort_values(ascending=False)
    segment, total = str(by_segment.index[0]), float(by_segment.iloc[0])
    length_of_path = float(path["dur_ns"].sum())
    if not length_of_path:
        return
    share = total / length_of_path
    row = table[table["segment"] == segment].iloc[0]
    named = row["name"] if isinstance(row["name"], str) else None
    of_it = f", most of it in {shortened(named, 48)} ({float(row['pct']):.3g} %)" if named else ""
    pieces = path[path["segment"] == segment]
    rows = _behind(trace, pieces, segment, named)
    longest = pieces.sort_values("dur_ns", ascending=False).iloc[0]
    begin = int(longest["start_ns"])
    window = None if len(rows) else (begin, begin + int(longest["dur_ns"]))
    presumed = float(path.loc[path["presumed"], "dur_ns"].sum()) / length_of_path
    doubt = f" {pct(presumed)} of the path is presumed, not recorded." if presumed > 0.01 else ""
    yield Finding(
        f"{duration(total)} of the critical path ({pct(share)}) is {_SEGMENTS[segment]}{of_it}.{doubt}",
        total,
        share,
        "the critical path",
        str(row["domain"]),
        "analysis.critical_path_summary(trace)",
        "what is not on the critical path can be made faster without any effect",
        kind="critical path",
        head=f"critical path: {pct(share)} is {_SEGMENTS[segment]}{of_it}",
        basis=f"no more than {duration(total)}, and less once another path is the longest",
        evidence=Evidence.of(trace, rows, window),
        frame="trace.analysis.critical_path_summary()",
    )


def _behind(trace: TraceData, pieces: pd.DataFrame, segment: str, named: str | None) -> Ints:
    """Return the spans that some pieces of the path are about; on the host those of the name that leads."""
    if segment != "host":
        mine = pieces[pieces["row"].notna()]
        mine = mine[mine["name"] == named] if named is not None else mine
        return mine["row"].to_numpy(dtype=np.int64)
    if named is None:
        return np.empty(0, np.int64)
    spans = trace.spans
    rows = np.flatnonzero(among(spans["name"], [named]) & among(spans["domain"], ("host",)) & measured(trace))
    begin = pieces["start_ns"].to_numpy(dtype=np.int64)
    on_path = merge(begin, begin + pieces["dur_ns"].to_numpy(dtype=np.int64))
    start = ints(spans["start_ns"])[rows]
    return rows[cover(on_path, start, start + spans["dur_ns"].to_numpy()[rows]) > 0]


def allocations(trace: TraceData) -> Iterator[Finding]:
    """Calls that allocate or free device memory in the driver, which no caching allocator should do often."""
    spans = trace.spans
    here = (spans["domain"] == "host").to_numpy() & (spans["timing"] == "measured").to_numpy()
    rows = np.flatnonzero(
        here & (spans["kind"] == "runtime").to_numpy() & names_matching(spans["name"], ALLOCATION)
    )
    whole = trace.duration_ns
    if not len(rows) or not whole:
        return
    start = ints(spans["start_ns"])[rows]
    cost = length(merge(start, start + spans["dur_ns"].to_numpy()[rows]))
    used = spans["name"].iloc[rows].astype(str).value_counts().index[:8].tolist()
    yield Finding(
        f"{count(len(rows), 'call')} of the driver's allocator, such as {used[0]}, took {duration(cost)} "
        f"({pct(cost / whole)} of the capture).",
        float(cost),
        cost / whole,
        "the capture's length",
        "host",
        "trace.operators(kinds=('runtime',))",
        "let a caching allocator reuse memory; allocate before the loop",
        kind="allocations",
        head=f"{count(len(rows), 'call')} of the driver's allocator take {duration(cost)}",
        could_save_ns=float(idle_during(trace, rows)) if len(device_work(trace)) else float(cost),
        basis="time in these calls while no device worked"
        if len(device_work(trace))
        else "the time of these calls",
        evidence=Evidence.of(trace, rows),
        frame=f'trace.spans[trace.spans["name"].isin({used!r})].sort_values("dur_ns", ascending=False)',
    )
