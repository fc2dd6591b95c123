"""From the host's call to the start of its work: how long launches waited, and which waited longest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.launch import launch_delays
from torchtrt_viz.analysis.device.launch_histogram import launch_delay_histogram
from torchtrt_viz.charts.chart import Axis, Bar, Bars, Chart, Columns, Part, Series
from torchtrt_viz.charts.names import kernel_label
from torchtrt_viz.charts.written import duration

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["launch_delay", "longest_delays"]

_NONE = "no device work with its launching call was recorded"
_SERIES = {"compute": "gpu0", "communication": "gpu1", "copy": "gpu2", "fill": "gpu3", "several": "gpu5"}


def launch_delay(trace: TraceData) -> Chart:
    """Draw how many launches waited how long."""
    frame = launch_delay_histogram(trace)
    timed = frame[frame["from_ns"].notna()]
    edges = sorted({int(edge) for column in ("from_ns", "to_ns") for edge in timed[column]})
    place = {edge: at for at, edge in enumerate(edges)}
    series, counts, says = [], [], []
    for name, rows in timed.groupby(timed["class"].fillna("several"), sort=False):
        values, said = [0.0] * (len(edges) - 1), [""] * (len(edges) - 1)
        for row in records(rows):
            at = place[int(row.from_ns)]
            values[at] = float(row.launches)
            said[at] = (
                f"{row.launches:,} launches of {name} waited {duration(row.from_ns)} to "
                f"{duration(row.to_ns)}, {duration(row.queued_ns)} in all"
            )
        series.append(Series(str(name), _SERIES.get(str(name), "rest")))
        counts.append(tuple(values))
        says.append(tuple(said))
    early = int(frame.loc[frame["from_ns"].isna(), "launches"].sum())
    words = ""
    if len(timed):
        most = timed.sort_values("launches", ascending=False, kind="stable").iloc[0]
        words = (
            f"{int(timed['launches'].sum()):,} launches; most often work waited {duration(most['from_ns'])} "
            f"to {duration(most['to_ns'])} after the call began, at most {duration(edges[-1])}."
        )
        words += (
            f" {early:,} began before their call: the clocks differ, they are not drawn." if early else ""
        )
    return Chart(
        "launch_delay",
        "Launch delay: from the call to the start of its work",
        words,
        Columns(
            tuple(series),
            tuple(map(float, edges)),
            tuple(counts),
            tuple(says),
            Axis("from the start of the call to the start of the work", "ns", log=True),
            Axis("launches", "", zero=True),
        )
        if len(timed)
        else None,
        frame,
        "launch_delay_histogram",
        _NONE,
    )


def longest_delays(trace: TraceData, *, top: int = 15) -> Chart:
    """Draw the longest wait of each kernel, with the operator that launched it."""
    frame = launch_delays(trace)
    shown = frame[frame["queued_ns"] > 0].sort_values("queued_ns", ascending=False, kind="stable")
    shown = shown.drop_duplicates(["name", "launched_by", "operator"]).head(top)
    bars = []
    for row in records(shown):
        name = f"graph of {row.pieces:,} pieces" if pd.isna(row.name) else kernel_label(row.name)
        by = row.launched_by if pd.isna(row.operator) else f"{row.operator} > {row.launched_by}"
        whole = f"graph of {row.pieces:,} pieces" if pd.isna(row.name) else row.name
        says = f"{whole}: began {duration(row.queued_ns)} after {by}, ran {duration(row.device_ns)}"
        first = row.launched_by if pd.isna(row.operator) else row.operator
        parts = (Part(0, float(row.queued_ns), says),)
        own = "" if pd.isna(row.name) else str(row.name)
        bars.append(Bar(f"{first} → {name}", duration(row.queued_ns), parts, says, own, int(row.row)))
    words = ""
    if bars:
        first = shown.iloc[0]
        by = first["launched_by"] if pd.isna(first["operator"]) else first["operator"]
        what = (
            f"a graph of {first['pieces']:,} pieces"
            if pd.isna(first["name"])
            else kernel_label(first["name"])
        )
        words = f"The longest wait is {duration(first['queued_ns'])}, of {what}, which {by} launched."
    return Chart(
        "longest_delays",
        "Longest launch delay of each kernel",
        words,
        Bars((Series("delay", "gpu0"),), tuple(bars), "ns") if bars else None,
        shown,
        "launch_delays",
        _NONE,
    )
