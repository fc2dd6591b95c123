"""Memory in use over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.analysis.device.memory_use import memory as memory_table
from torchtrt_viz.analysis.device.memory_use import memory_peaks
from torchtrt_viz.charts.chart import Axis, Chart, Line, Plot
from torchtrt_viz.charts.written import byte_size, duration

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["begin_of", "memory"]


def begin_of(trace: TraceData) -> int:
    """Return the start of the first measured event, from which charts count time."""
    measured = trace.measured
    return int(measured["start_ns"].min()) if len(measured) else 0


def memory(trace: TraceData) -> Chart:
    """Draw memory in use, and held by the allocator, per device."""
    frame, peaks = memory_table(trace), memory_peaks(trace)
    begin = begin_of(trace)
    lines = []
    for at, (device, rows) in enumerate(frame.groupby("device", sort=False, observed=True)):
        side = "gpu" if str(device).startswith(("cuda", "hip", "xpu")) else "host"
        for column, words, dashed in (
            ("allocated_bytes", "in use", False),
            ("reserved_bytes", "held by the allocator", True),
        ):
            known = rows[rows[column].notna()]
            if len(known):
                lines.append(
                    Line(
                        f"{device}, {words}",
                        f"{side}{at % 8}",
                        tuple((known["ts_ns"] - begin).astype(float)),
                        tuple(known[column].astype(float)),
                        dashed,
                        step=True,
                    )
                )
    words = ""
    if len(peaks):
        most = peaks.sort_values("peak_allocated_bytes", ascending=False, kind="stable").iloc[0]
        words = (
            f"Most memory in use: {byte_size(most['peak_allocated_bytes'])} on {most['device']}, "
            f"{duration(most['peak_at_ns'] - begin)} after the first event."
        )
    return Chart(
        "memory",
        "Memory over time",
        words,
        Plot(Axis("time from the first event", "ns"), Axis("memory", "byte", zero=True), lines=tuple(lines))
        if lines
        else None,
        frame,
        "memory",
        "no memory was recorded: torch.profiler does with profile_memory=True",
    )
