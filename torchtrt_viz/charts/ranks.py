"""Ranks of a session beside each other: their steps, and who was waited for."""

from __future__ import annotations

from typing import Any

import pandas as pd

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.charts.chart import Axis, Bar, Bars, Chart, Line, Part, Plot, Point, Series
from torchtrt_viz.charts.written import duration

__all__ = ["rank_steps", "waited_for"]

_LINES = 8
"""Ranks with a line of their own; of more the steps are points, one colour a role."""
_MOST = 3000


def _name(row: Any) -> str:
    words = ["rank ?" if pd.isna(row.rank) else f"rank {int(row.rank)}"]
    words += [str(value) for value in (row.role, getattr(row, "stage", None)) if not pd.isna(value)]
    return " ".join(words)


def rank_steps(steps: pd.DataFrame) -> Chart:
    """Draw the length of every step of each rank; ``steps`` is `Session.steps` or `Overview.steps`."""
    shown = steps[steps["dur_ns"] > 0]
    keys = ["session", "rank", "role", "instance", "host", "cycle", "stage"]
    groups = list(shown.groupby(keys, dropna=False, sort=False))
    x, y = Axis("step"), Axis("host time of the step", "ns", log=True)
    words = ""
    if groups:
        longest = next(records(shown.sort_values("dur_ns", ascending=False, kind="stable").head(1)))
        words = (
            f"{len(shown):,} steps of {len(groups):,} recordings. The longest is step {longest.step} of "
            f"{_name(longest)}, {duration(longest.dur_ns)}."
        )
    body: Plot | None = None
    if 0 < len(groups) <= _LINES:
        lines, points = [], []
        for at, (_, rows) in enumerate(groups):
            rows = rows.sort_values("step", kind="stable")
            name = _name(next(records(rows.head(1))))
            places = (tuple(rows["step"].astype(float)), tuple(rows["dur_ns"].astype(float)))
            lines.append(Line(name, f"host{at % 8}", *places))
            points += [Point(float(row.step), float(row.dur_ns), at, _step(row)) for row in records(rows)]
        series = tuple(Series(line.name, line.color) for line in lines)
        body = Plot(x, y, series, tuple(points), tuple(lines))
    elif groups:
        most = shown.sort_values("dur_ns", ascending=False, kind="stable").head(_MOST)
        roles = list(dict.fromkeys(most["role"].fillna("all ranks")))
        points = [
            Point(
                float(row.step),
                float(row.dur_ns),
                roles.index("all ranks" if pd.isna(row.role) else row.role),
                _step(row),
            )
            for row in records(most)
        ]
        series = tuple(Series(str(role), f"host{at % 8}") for at, role in enumerate(roles))
        body = Plot(x, y, series, tuple(points))
        if len(shown) > len(most):
            words += f" The {len(most):,} longest are drawn."
    return Chart(
        "rank_steps",
        "Steps of each rank (host time)",
        words,
        body,
        steps,
        "session.steps",
        "no rank recorded steps",
    )


def _step(row: Any) -> str:
    return f"{_name(row)}, step {row.step} ({row.name}): {duration(row.dur_ns)} host time"


def waited_for(stragglers: pd.DataFrame, *, top: int = 32) -> Chart:
    """Draw how long others waited for each rank; ``stragglers`` is `Overview.stragglers`."""
    frame = stragglers[stragglers["waited_for_ns"].notna()]
    shown = frame[frame["waited_for_ns"] > 0]
    shown = shown.sort_values("waited_for_ns", ascending=False, kind="stable").head(top)
    bars = []
    for row in records(shown):
        says = (
            f"others waited {duration(row.waited_for_ns)} for {_name(row)}, which was the last of a "
            f"collective {int(row.last_in):,} times"
        )
        parts = (Part(0, float(row.waited_for_ns), says),)
        bars.append(Bar(_name(row), duration(row.waited_for_ns), parts, says))
    words = (
        f"Summed over the ranks that waited, {bars[0].label} cost most: {bars[0].written}." if bars else ""
    )
    return Chart(
        "waited_for",
        "Ranks that others waited for",
        words,
        Bars((Series("time that others waited", "host0"),), tuple(bars), "ns") if bars else None,
        stragglers,
        "session.stragglers",
        "no rank waited for another in a recorded collective",
    )
