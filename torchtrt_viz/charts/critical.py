"""What the end of the capture waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.critical import critical_path, critical_path_summary
from torchtrt_viz.charts.chart import Bar, Bars, Chart, Part, Series
from torchtrt_viz.charts.names import kernel_label
from torchtrt_viz.charts.written import duration

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["critical"]

_SIDES = (Series("waited for the host", "host0"), Series("waited for the GPU", "gpu0"))
_MOST = 40
_MOST_ROWS = 5_000
"""Spans of the path that a timeline is shown: the longest."""
_LEAST_PCT = 0.1
"""Of the path: what took less is one piece at the bar's end."""


def critical(trace: TraceData) -> Chart:
    """Draw the critical path by segment, each bar divided by what ran."""
    path = critical_path(trace)
    segments = critical_path_summary(trace, path, by="segment")
    names = critical_path_summary(trace, path)
    bars = []
    for segment in records(segments):
        side = int(segment.domain == "gpu")
        mine = names[names["segment"] == segment.segment]
        large = mine[mine["pct"] >= _LEAST_PCT].head(_MOST)
        parts = [
            Part(
                side,
                float(row.total_ns),
                f"{segment.segment}: {'(nothing recorded)' if pd.isna(row.name) else row.name}: "
                f"{duration(row.total_ns)} ({row.pct:.1f} % of the path), {row.pieces:,} pieces",
            )
            for row in records(large)
        ]
        if len(mine) > len(large):
            rest = mine.iloc[len(large) :]
            says = f"{segment.segment}: {len(rest):,} more names, {duration(float(rest['total_ns'].sum()))}"
            parts.append(Part(side, float(rest["total_ns"].sum()), says))
        first = mine.iloc[0]["name"] if len(mine) else None
        label = segment.segment if pd.isna(first) else f"{segment.segment}: {kernel_label(first)}"
        label += f" and {len(mine) - 1:,} more" if len(mine) > 1 else ""
        bars.append(Bar(label, f"{duration(segment.total_ns)} · {segment.pct:.1f} %", tuple(parts)))
    rows = path[path["row"].notna()].sort_values("dur_ns", ascending=False, kind="stable").head(_MOST_ROWS)
    words = ""
    if bars:
        first = segments.iloc[0]
        words = (
            "What the end waited for, back to the beginning, "
            f"{duration(float(segments['total_ns'].sum()))} in all: "
            f"most of it {first['segment']}, {first['pct']:.1f} %."
        )
    return Chart(
        "critical_path",
        "Critical path",
        words,
        Bars(_SIDES, tuple(bars), "ns") if bars else None,
        names,
        "critical_path_summary",
        "no host activity or device work with a place in time was recorded",
        tuple(rows["row"].drop_duplicates().astype(int)),
    )
