"""What each device did with its time, and why it had nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.idle import CAUSES, idle_causes
from torchtrt_viz.analysis.device.temporal import temporal_breakdown
from torchtrt_viz.charts.chart import Bar, Bars, Chart, Part, Series
from torchtrt_viz.charts.written import duration

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["gpu_time", "idle"]

_NONE = "no device work was recorded"
_PARTS = (
    ("compute_ns", Series("compute", "gpu0")),
    ("exposed_communication_ns", Series("communication, nothing computed", "gpu1")),
    ("exposed_copy_ns", Series("copies and fills alone", "gpu2")),
    ("idle_ns", Series("idle", "rest")),
)
_CAUSE_WORDS = {
    "host wait": Series("waits for the host: launched too late", "gpu1"),
    "kernel wait": Series("between pieces that were launched in time", "gpu2"),
    "other": Series("launched in time, waits for something else", "gpu5"),
    "unknown": Series("unknown: its launch is not in the trace", "rest"),
}


def _device(number: Any) -> str:
    return "GPU" if pd.isna(number) else f"GPU {int(number)}"


def gpu_time(trace: TraceData) -> Chart:
    """Draw each device's time: computing, communicating, copying, idle."""
    frame = temporal_breakdown(trace)
    bars = []
    for row in frame.to_dict("records"):
        if pd.isna(row["span_ns"]) or not row["span_ns"]:
            continue
        parts = tuple(
            Part(
                at,
                float(row[column]),
                f"{_device(row['device'])}, {one.name}: {duration(row[column])} "
                f"({100 * row[column] / row['span_ns']:.1f} % of {duration(row['span_ns'])})",
            )
            for at, (column, one) in enumerate(_PARTS)
            if not pd.isna(row[column])
        )
        busy = f"busy {duration(row['busy_ns'])} of {duration(row['span_ns'])}"
        bars.append(Bar(_device(row["device"]), busy, parts))
    words = ""
    if bars:
        worst = frame.sort_values("idle_pct", ascending=False, kind="stable").iloc[0]
        words = (
            f"{_device(worst['device'])} computes {worst['compute_pct']:.1f} % of the time from its first to "
            f"its last piece of work, and is idle {worst['idle_pct']:.1f} %."
        )
    return Chart(
        "gpu_time",
        "Where the GPU's time went",
        words,
        Bars(tuple(one for _, one in _PARTS), tuple(bars), "ns") if bars else None,
        frame,
        "temporal_breakdown",
        _NONE,
    )


def idle(trace: TraceData, *, level: str = "stream") -> Chart:
    """Draw the idle time of each stream, or device, by cause."""
    frame = idle_causes(trace, level=level)
    bars = []
    for (device, stream), rows in frame.groupby(["device", "stream"], sort=False, dropna=False):
        label = str(stream) if isinstance(stream, str) else _device(device)
        parts = tuple(
            Part(
                CAUSES.index(row.cause),
                float(row.idle_ns),
                f"{label} {_CAUSE_WORDS[row.cause].name}: {duration(row.idle_ns)} ({row.idle_pct:.1f} %) in "
                f"{row.gaps:,} gaps, the longest {duration(row.max_ns)}",
            )
            for row in records(rows)
        )
        bars.append(Bar(label, f"idle {duration(sum(part.value for part in parts))}", parts))
    words = ""
    if len(frame):
        most = frame.sort_values("idle_ns", ascending=False, kind="stable").iloc[0]
        where = _device(most["device"]) if pd.isna(most["stream"]) else str(most["stream"])
        words = (
            f"The most idle time of one cause is {duration(most['idle_ns'])}: {where}, "
            f"{_CAUSE_WORDS[str(most['cause'])].name}, in {most['gaps']:,} gaps."
        )
    return Chart(
        "idle",
        "Why streams were idle (GPU time)" if level == "stream" else "Why devices were idle (GPU time)",
        words,
        Bars(tuple(_CAUSE_WORDS[cause] for cause in CAUSES), tuple(bars), "ns") if bars else None,
        frame,
        "idle_causes",
        _NONE if not bars else "",
    )
