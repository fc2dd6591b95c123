"""Operators and layers under a device's roof."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.analysis.device.device_specs import Device
from torchtrt_viz.analysis.device.roofline import operator_roofline, precision_of
from torchtrt_viz.analysis.device.roofs import device_roofs
from torchtrt_viz.analysis.engine.roofline import engine_roofline
from torchtrt_viz.charts.chart import Axis, Chart, Line, Plot, Point, Series
from torchtrt_viz.charts.written import duration, number

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["roofline"]

_NONE = (
    "no operator or layer has shapes and a time: torch.profiler records shapes with record_shapes=True, and "
    "an engine's layer information has them"
)
_MOST = 1500


def roofline(trace: TraceData, *, of: str | None = None, device: Device | str | None = None) -> Chart:
    """Draw arithmetic reached over intensity, under the device's roofs where they are known.

    ``of`` is "operators" or "layers"; None: layers where an engine is described, else operators.
    """
    layers = engine_roofline(trace, device=device)
    use_layers = of == "layers" or (of is None and layers["tflops"].notna().any())
    frame = layers if use_layers else operator_roofline(trace, device=device)
    time = "mean_ns" if use_layers else "time_ns"
    shown = frame[frame["intensity"].notna() & frame["tflops"].notna() & (frame["tflops"] > 0)].head(_MOST)
    side = "host" if len(shown) and (shown["domain"] == "host").all() else "gpu"
    families = list(dict.fromkeys(shown["type" if use_layers else "family"].fillna("unknown")))[:8]
    points = []
    for row in shown.to_dict("records"):
        family = row["type" if use_layers else "family"]
        points.append(
            Point(
                float(row["intensity"]),
                float(row["tflops"]),
                families.index(family) if family in families else len(families) - 1,
                _hover(row, time),
            )
        )
    roofs = device_roofs(trace, device=device)
    lines = _roofs(roofs, shown["precision" if use_layers else "dtype"], [point.x for point in points])
    what = "layer" if use_layers else "operator and shape"
    return Chart(
        "roofline",
        f"Roofline of {'layers' if use_layers else 'operators'} ({'host' if side == 'host' else 'GPU'} time)",
        _says(shown, frame, roofs, what, time),
        Plot(
            Axis("intensity [operation/byte]", "", log=True),
            Axis("reached [10^12 operation/s]", "", log=True),
            tuple(Series(str(name), f"{side}{at % 8}") for at, name in enumerate(families)),
            tuple(points),
            lines,
        )
        if points
        else None,
        frame,
        "engine_roofline" if use_layers else "operator_roofline",
        _NONE,
    )


def _hover(row: dict[Any, Any], time: str) -> str:
    words = [str(row["name"])]
    if not pd.isna(row.get("shape")):
        words.append(str(row["shape"]))
    words.append(f"{number(row['tflops'])} TFLOP/s at {number(row['intensity'])} operation/byte")
    if not pd.isna(row["efficiency_pct"]):
        words.append(f"{row['efficiency_pct']:.1f} % of the roof ({row['bound']})")
    if not pd.isna(row[time]):
        words.append(f"{duration(row[time])} {'host' if row['domain'] == 'host' else 'GPU'} time")
    return " · ".join(words)


def _roofs(roofs: pd.DataFrame, types: Iterable[Any], intensities: list[float]) -> tuple[Line, ...]:
    if not len(roofs) or not intensities:
        return ()
    used = {precision_of(None if pd.isna(value) else str(value)) for value in types}
    chosen = roofs[roofs["precision"].isin(used)]
    chosen = chosen if len(chosen) else roofs
    # both sides of every roof are in sight
    low = min(*intensities, float(chosen["ridge"].min())) / 3
    high = max(*intensities, float(chosen["ridge"].max())) * 3
    lines = []
    # precisions with one limit are one line
    for at, (_, rows) in enumerate(chosen.groupby("tflops", sort=True)):
        top = float(rows["tflops"].iloc[0])
        slope, ridge = float(rows["gbps"].iloc[0]) / 1e3, float(rows["ridge"].iloc[0])
        corners = [low, ridge, high]
        name = f"roof {', '.join(rows['precision'])}: {number(top)} TFLOP/s, {number(slope * 1e3)} GB/s"
        lines.append(
            Line(
                name,
                f"host{(2, 4, 5, 7)[at % 4]}",
                tuple(corners),
                tuple(min(top, slope * x) for x in corners),
                dashed=at > 0,
                says=f"{rows['device'].iloc[0]}, {name}",
            )
        )
    return tuple(lines)


def _says(shown: pd.DataFrame, frame: pd.DataFrame, roofs: pd.DataFrame, what: str, time: str) -> str:
    if not len(shown):
        return ""
    left = len(frame) - len(shown)
    notes = f" {left:,} rows lack shapes or a time." if left else ""
    first = shown.sort_values(time, ascending=False, kind="stable").iloc[0]
    if not len(roofs):
        return (
            f"A point is one {what}. No roof is drawn (NA): the trace names no device, or one whose limits "
            f"are not known; give one with device='A100'.{notes}"
        )
    bound = shown["bound"].value_counts()
    reach = (
        "" if pd.isna(first["efficiency_pct"]) else f" reaches {first['efficiency_pct']:.1f} % of its roof"
    )
    return (
        f"A point is one {what} under the roof of {roofs['device'].iloc[0]}: "
        f"{int(bound.get('memory', 0)):,} are bound by memory, "
        f"{int(bound.get('compute', 0)):,} by arithmetic. The longest, {first['name']},"
        f"{reach or ' has no known roof'}.{notes}"
    )
