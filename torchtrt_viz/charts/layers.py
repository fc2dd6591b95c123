"""Layers of engines: by time, and by type and precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.engine.layer_sorts import layer_types as layer_types_table
from torchtrt_viz.analysis.engine.layer_table import layers as layer_table
from torchtrt_viz.charts.chart import Bar, Bars, Chart, Part, Series
from torchtrt_viz.charts.names import engine_label, layer_label
from torchtrt_viz.charts.written import duration, shortened
from torchtrt_viz.errors import OptionError

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["layer_types", "layers"]

SIDES = (Series("host time", "host0"), Series("GPU time", "gpu0"))
_NONE = "no times of layers were recorded: profile(level='layers'), trtexec's profile or TREX's does"


def layers(trace: TraceData, *, engine: str | None = None, top: int = 30) -> Chart:
    """Draw the layers that took longest."""
    frame = layer_table(trace)
    if engine is not None:
        frame = _of(frame, engine)
    frame = frame[frame["total_ns"].notna() & frame["domain"].notna()]
    shown = frame.sort_values("total_ns", ascending=False, kind="stable").head(top)
    several = frame["engine"].nunique() > 1
    bars = []
    for row in records(shown):
        side = int(row.domain == "gpu")
        share = "" if pd.isna(row.pct) else f" · {row.pct:.1f} %"
        label = layer_label(row.name, row.module)
        if several:
            where = engine_label(row.engine)
            label = f"{shortened(label, max(16, 43 - len(where)))} · {where}"
        calls = "" if pd.isna(row.calls) else f", {int(row.calls):,} calls"
        what = " · ".join(str(v) for v in (row.type, row.precision) if not pd.isna(v))
        says = f"{row.name}: {duration(row.total_ns)} {SIDES[side].name}{calls}{f' · {what}' if what else ''}"
        says += f" · engine {row.engine}" if isinstance(row.engine, str) else ""
        bars.append(
            Bar(
                label,
                f"{duration(row.total_ns)}{share}",
                (Part(side, float(row.total_ns), says),),
                says,
                str(row.name),
            )
        )
    used = sorted({part.series for bar in bars for part in bar.parts})
    return Chart(
        "layers",
        f"Layers by time ({len(shown)} of {len(frame)})" if len(frame) > top else "Layers by time",
        _says(shown, len(frame)),
        Bars(SIDES, tuple(bars), "ns") if used else None,
        shown,
        "layers",
        _NONE,
    )


def _of(frame: pd.DataFrame, engine: str) -> pd.DataFrame:
    known = frame["engine"].dropna().unique().tolist()
    if engine not in known:
        raise OptionError("engine", engine, f"one of {known}")
    return frame[frame["engine"] == engine]


def _says(shown: pd.DataFrame, of: int) -> str:
    if not len(shown):
        return ""
    first = shown.iloc[0]
    share = "" if pd.isna(first["pct"]) else f", {first['pct']:.1f} % of its engine's layers"
    side = "GPU" if first["domain"] == "gpu" else "host"
    return (
        f"Of {of:,} timed layers {layer_label(first['name'])} takes longest: {duration(first['total_ns'])} "
        f"{side} time{share}."
    )


def layer_types(trace: TraceData, *, engine: str | None = None, top: int = 24) -> Chart:
    """Draw the time of layers by type, each bar divided by precision."""
    frame = layer_types_table(trace)
    if engine is not None:
        frame = _of(frame, engine)
    timed = frame[frame["total_ns"].notna() & frame["domain"].notna()]
    several = timed["engine"].nunique() > 1
    precisions = list(dict.fromkeys(timed["precision"].fillna("unknown")))
    series: list[Series] = []
    number: dict[tuple[str, str], int] = {}
    for domain in ("host", "gpu"):
        side = timed[timed["domain"] == domain]
        for precision in dict.fromkeys(side["precision"].fillna("unknown")):
            number[domain, precision] = len(series)
            words = f"{precision} ({'GPU' if domain == 'gpu' else 'host'} time)"
            series.append(Series(words, f"{domain}{precisions.index(precision) % 8}"))
    bars = []
    groups = timed.groupby(["engine", "type"], sort=False, dropna=False)
    for (engine_name, kind), rows in list(groups)[:top]:
        parts = tuple(
            Part(
                number[row.domain, "unknown" if pd.isna(row.precision) else row.precision],
                float(row.total_ns),
                f"{kind}, {'unknown precision' if pd.isna(row.precision) else row.precision}: "
                f"{duration(row.total_ns)}{'' if pd.isna(row.pct) else f' ({row.pct:.1f} %)'} in "
                f"{row.timed:,} layers",
            )
            for row in records(rows)
        )
        label = f"{kind} · {engine_label(engine_name)}" if several else str(kind)
        whole = sum(part.value for part in parts)
        share = float(rows["pct"].sum())
        bars.append(Bar(label, f"{duration(whole)} · {share:.1f} %", parts))
    left = len(groups) - len(bars)
    says = ""
    if len(timed):
        first = timed.iloc[0]
        precision = "of unknown precision" if pd.isna(first["precision"]) else f"in {first['precision']}"
        says = (
            f"Most time goes to layers of type {first['type']} {precision}: {duration(first['total_ns'])}"
            + ("." if pd.isna(first["pct"]) else f", {first['pct']:.1f} % of its engine's timed layers.")
            + (f" {left:,} more types are not drawn." if left > 0 else "")
        )
    return Chart(
        "layer_types",
        "Layers by type and precision",
        says,
        Bars(tuple(series), tuple(bars), "ns") if bars else None,
        frame,
        "layer_types",
        "no engine of the trace has both a description of its layers and their times",
    )
