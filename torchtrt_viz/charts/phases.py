"""What calls of delegates consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED
from torchtrt_viz.analysis.engine.delegate_calls import phases as phase_table
from torchtrt_viz.charts.chart import Bar, Bars, Chart, Part, Series
from torchtrt_viz.charts.names import engine_label
from torchtrt_viz.charts.written import duration

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["delegate_phases"]


def delegate_phases(trace: TraceData, *, top: int = 20) -> Chart:
    """Draw the host time of each delegate, divided by the phases of its calls."""
    frame = phase_table(trace)
    names = [name for name in dict.fromkeys(frame["phase"]) if name != UNATTRIBUTED]
    series = [Series(str(name), f"host{at % 8}") for at, name in enumerate(names)]
    names.append(UNATTRIBUTED)
    series.append(Series("outside its phases", "rest"))
    bars = []
    for delegate, rows in frame.groupby("delegate", sort=False, dropna=False):
        parts = tuple(
            Part(
                names.index(row.phase),
                float(row.total_ns),
                f"{series[names.index(row.phase)].name} of {delegate}: {duration(row.total_ns)} host time"
                f"{'' if pd.isna(row.pct) else f' ({row.pct:.1f} %)'}, {row.calls:,} times. {row.role}",
            )
            for row in records(rows)
        )
        whole = sum(part.value for part in parts)
        bars.append((whole, Bar(engine_label(delegate), duration(whole), parts, str(delegate))))
    bars.sort(key=lambda pair: -pair[0])
    words = ""
    if len(frame):
        most = frame.sort_values("total_ns", ascending=False, kind="stable").iloc[0]
        name = series[names.index(most["phase"])].name
        words = f"Most host time: {name} of {engine_label(most['delegate'])}, {duration(most['total_ns'])}."
        words += f" {len(bars) - top:,} more delegates are not drawn." if len(bars) > top else ""
    return Chart(
        "delegate_phases",
        "Phases of delegate calls (host time)",
        words,
        Bars(tuple(series), tuple(bar for _, bar in bars[:top]), "ns") if bars else None,
        frame,
        "phases",
        "no phases of delegate calls were recorded: profile(level='phases') does",
    )
