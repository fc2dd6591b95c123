"""Collectives and launches of graphs, each at its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from torchtrt_viz.analysis.core.humanize import count
from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.communication import collectives as collective_table
from torchtrt_viz.analysis.device.graph_table import graphs as graph_table
from torchtrt_viz.analysis.device.temporal import overlap
from torchtrt_viz.charts.chart import Axis, Chart, Plot, Point, Series
from torchtrt_viz.charts.memory import begin_of
from torchtrt_viz.charts.written import byte_size, duration, number

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["collectives", "graph_launches"]

_MOST = 3000
_TIME = Axis("time from the first event", "ns")


def collectives(trace: TraceData) -> Chart:
    """Draw every collective by its start and its duration on the device."""
    frame = collective_table(trace)
    shown = frame.sort_values("dur_ns", ascending=False, kind="stable").head(_MOST)
    shown = shown[shown["dur_ns"] > 0]
    kinds = list(dict.fromkeys(shown["collective"]))
    begin = begin_of(trace)
    points = tuple(
        Point(float(row.start_ns - begin), float(row.dur_ns), kinds.index(row.collective), _collective(row))
        for row in records(shown)
    )
    words = ""
    if points:
        first = shown.iloc[0]
        longest = f"{first['collective']}, took {duration(first['dur_ns'])}"
        words = f"{len(frame):,} collectives; the longest, {longest}."
        hidden = overlap(trace)
        for row in records(hidden[hidden["communication_ns"] > 0].head(2)):
            device = "the GPU" if pd.isna(row.device) else f"GPU {int(row.device)}"
            words += (
                f" On {device}, {row.overlap_pct:.1f} % of the communication is hidden under computation."
            )
        words += f" The {len(shown):,} longest are drawn." if len(frame) > len(shown) else ""
    return Chart(
        "collectives",
        "Collectives (GPU time, the wait for other ranks included)",
        words,
        Plot(
            _TIME,
            Axis("duration", "ns", log=True),
            tuple(Series(str(name), f"gpu{at % 8}") for at, name in enumerate(kinds)),
            points,
        )
        if points
        else None,
        frame,
        "collectives",
        "no collective ran on a device",
    )


def _collective(row: object) -> str:
    words = [f"{row.collective} on {row.stream}: {duration(row.dur_ns)} GPU time"]  # type: ignore[attr-defined]
    for name, write in (
        ("message_bytes", byte_size),
        ("group", lambda value: f"group {value}"),
        ("bus_gbps", lambda value: f"bus {number(float(value))} GB/s at least"),
        ("kernel", str),
    ):
        value = getattr(row, name)
        if not pd.isna(value):
            words.append(write(value))
    return " · ".join(words)


def graph_launches(trace: TraceData) -> Chart:
    """Draw every launch of a graph: its host time, and the time in which its work kept the device busy."""
    frame = graph_table(trace)
    shown = frame.head(_MOST)
    begin = begin_of(trace)
    points = []
    for row in records(shown):
        name = "graph" if pd.isna(row.graph) else f"graph {row.graph}"
        at = float(row.start_ns - begin)
        words = f"{name} launched by {row.launched_by}"
        if row.host_ns > 0:
            points.append(Point(at, float(row.host_ns), 0, f"{words}: {duration(row.host_ns)} host time"))
        if not pd.isna(row.gpu_busy_ns) and row.gpu_busy_ns > 0:
            says = f"{words}: {row.kernels:,} kernels, GPU busy {duration(row.gpu_busy_ns)}"
            points.append(Point(at, float(row.gpu_busy_ns), 1, says))
    words = f"{count(len(frame), 'launch', 'launches')}. {frame.attrs.get('coverage', '')}".strip()
    words += f" The first {len(shown):,} are drawn." if len(frame) > len(shown) else ""
    return Chart(
        "graph_launches",
        "Graph launches",
        words,
        Plot(
            _TIME,
            Axis("time of one launch", "ns", log=True),
            (Series("host time of the launch", "host0"), Series("GPU busy with its work", "gpu0")),
            tuple(points),
        )
        if points
        else None,
        frame,
        "graphs",
        "no graph was launched",
    )
