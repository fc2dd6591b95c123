"""Device work by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.operator_tables import kernels as kernel_table
from torchtrt_viz.charts.chart import Bar, Bars, Chart, Part, Series
from torchtrt_viz.charts.names import kernel_label
from torchtrt_viz.charts.written import duration, shortened

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["kernels"]


def kernels(trace: TraceData, *, top: int = 30) -> Chart:
    """Draw the kernels, copies and fills that took longest in sum."""
    frame = kernel_table(trace)
    shown = frame.head(top)
    bars = []
    for row in records(shown):
        says = f"{row.name}: {duration(row.total_ns)} GPU time, {row.calls:,} calls, {row.total_pct:.1f} %"
        written = f"{duration(row.total_ns)} · {row.total_pct:.1f} %"
        bars.append(
            Bar(kernel_label(row.name), written, (Part(0, float(row.total_ns), says),), says, str(row.name))
        )
    words = ""
    if bars:
        most = f"{shortened(bars[0].label, 80)} takes most: {bars[0].written}"
        words = f"Of {len(frame):,} names {most} of all device work."
    return Chart(
        "kernels",
        "GPU work by name, sums of durations",
        words,
        Bars((Series("GPU time", "gpu0"),), tuple(bars), "ns") if bars else None,
        frame,
        "kernels",
        "no device work was recorded",
    )
