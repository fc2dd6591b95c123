"""Charts as plotly figures: the marks of `torchtrt_viz.charts`, with plotly's axes, legend and zoom."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from torchtrt_viz.charts.chart import Axis, Bars, Boxes, Chart, Columns, Graph, Line, Plot
from torchtrt_viz.charts.palette import color, theme_colors
from torchtrt_viz.widgets.figures.blank import apart, blank, label, plotly, safe, say_nothing, unit_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["figure_of"]

_BAR, _ROW = 22, 46
_HOVER = "%{customdata}<extra></extra>"
_NAMED_NODES = 150
"""In graphs of more nodes names are hover labels only: plotly would draw them over one another."""


def figure_of(chart: Chart, *, height: int | None = None, theme: str = "auto") -> go.Figure:
    """Return a chart as a figure; one without data says why."""
    body = chart.body
    figure = blank(chart.title, height or _height(body), theme)
    if body is None:
        say_nothing(figure, chart.missing)
    elif isinstance(body, Bars):
        _bars(figure, body)
    elif isinstance(body, Columns):
        _columns(figure, body)
    elif isinstance(body, Plot):
        _plot(figure, body)
    elif isinstance(body, Boxes):
        _boxes(figure, body)
    else:
        _graph(figure, body)
    return figure


def _height(body: Any) -> int:
    if isinstance(body, Bars):
        return max(220, 130 + _BAR * len(body.bars))
    if isinstance(body, Boxes):
        return max(240, 70 + 22 * (max(body.depth, default=0) + 2))
    if isinstance(body, Graph):
        return min(4000, max(400, 80 + _ROW * (max((node.rank for node in body.nodes), default=0) + 1)))
    return 380


def _bars(figure: go.Figure, body: Bars) -> None:
    names = apart([label(bar.label) for bar in body.bars])
    scale, unit = unit_of(sum(part.value for part in bar.parts) for bar in body.bars)
    for number, series in enumerate(body.series):
        parts = [
            (name, part)
            for name, bar in reversed(list(zip(names, body.bars, strict=True)))
            for part in bar.parts
            if part.series == number
        ]
        if parts:
            figure.add_bar(
                orientation="h",
                y=[name for name, _ in parts],
                x=[part.value / scale for _, part in parts],
                name=safe(series.name),
                marker_color=color(series.color),
                customdata=[safe(part.says) for _, part in parts],
                hovertemplate=_HOVER,
            )
    figure.update_xaxes(title=f"time [{unit}]")
    figure.update_layout(margin={"l": 10}, barmode="stack")
    figure.update_yaxes(automargin=True, categoryorder="array", categoryarray=names[::-1])


def _axis(axis: Axis, values: list[float]) -> tuple[float, dict[str, Any]]:
    scale, unit = 1.0, axis.unit
    if axis.unit == "ns":
        scale, unit = unit_of(values)
    elif axis.unit == "byte":
        scale, unit = float(2**20), "MiB"
    title = f"{axis.title} [{unit}]" if unit else axis.title
    settings: dict[str, Any] = {"title": title, "type": "log" if axis.log else "linear"}
    if axis.zero:
        settings["rangemode"] = "tozero"
    return scale, settings


def _columns(figure: go.Figure, body: Columns) -> None:
    scale, x = _axis(body.x, list(body.edges))
    _, y = _axis(body.y, [])
    edges = [edge / scale for edge in body.edges]
    for series, counts, says in zip(body.series, body.counts, body.says, strict=True):
        figure.add_bar(
            x=[(a * b) ** 0.5 for a, b in pairwise(edges)],
            width=[(b - a) * 0.96 for a, b in pairwise(edges)],
            y=list(counts),
            name=safe(series.name),
            marker_color=color(series.color),
            customdata=[safe(words) for words in says],
            hovertemplate=_HOVER,
        )
    figure.update_xaxes(**x)
    figure.update_yaxes(**y)
    figure.update_layout(barmode="stack")


def _plot(figure: go.Figure, body: Plot) -> None:
    xs = [*(point.x for point in body.points), *(value for line in body.lines for value in line.x)]
    ys = [*(point.y for point in body.points), *(value for line in body.lines for value in line.y)]
    x_scale, x = _axis(body.x, xs)
    y_scale, y = _axis(body.y, ys)
    for line in body.lines:
        _line(figure, line, body, x_scale, y_scale)
    for number, series in enumerate(body.series):
        points = [point for point in body.points if point.series == number]
        if points:
            figure.add_scatter(
                x=[point.x / x_scale for point in points],
                y=[point.y / y_scale for point in points],
                mode="markers",
                name=safe(series.name),
                marker={"color": color(series.color), "size": 8},
                customdata=[safe(point.says) for point in points],
                hovertemplate=_HOVER,
            )
    figure.update_xaxes(**x)
    figure.update_yaxes(**y)


def _line(figure: go.Figure, line: Line, body: Plot, x_scale: float, y_scale: float) -> None:
    unit = _axis(body.y, [])[1]["title"].partition("[")[2].rstrip("]")
    figure.add_scatter(
        x=[value / x_scale for value in line.x],
        y=[value / y_scale for value in line.y],
        mode="lines",
        name=safe(line.name),
        line={
            "color": color(line.color),
            "dash": "dot" if line.dashed else "solid",
            "shape": "hv" if line.step else "linear",
        },
        hovertemplate=f"%{{y:.4g}} {unit}<extra>%{{fullData.name}}</extra>",
    )


def _boxes(figure: go.Figure, body: Boxes) -> None:
    figure.add_trace(
        plotly().Icicle(
            ids=["all", *(f"n{at}" for at in range(len(body.name)))],
            labels=["all", *(label(name) for name in body.name)],
            parents=["", *("all" if above < 0 else f"n{above}" for above in body.parent)],
            values=[body.whole, *body.width],
            branchvalues="total",
            marker={"colors": [color("rest"), *map(color, body.color)]},
            textfont={"color": "#ffffff"},
            customdata=["everything", *map(safe, body.says)],
            hovertemplate=_HOVER,
            leaf={"opacity": 1},
            tiling={"orientation": "v"},
        )
    )
    figure.update_layout(margin={"l": 8, "r": 8, "t": 44, "b": 8})


def _graph(figure: go.Figure, body: Graph) -> None:
    dark = str(figure.layout.paper_bgcolor) == theme_colors("dark")["back"]
    colors = theme_colors("dark" if dark else "light")
    x: list[float | None] = []
    y: list[float | None] = []
    for edge in body.edges:
        source, target = body.nodes[edge.source], body.nodes[edge.target]
        x += [source.x, *edge.via, target.x, None]
        y += [-row for row in range(source.rank, source.rank + len(edge.via) + 1)]
        y += [-target.rank, None]
    figure.add_scatter(x=x, y=y, mode="lines", line={"color": colors["muted"], "width": 1}, hoverinfo="skip")
    # an edge is pointed at where its tensor is written
    figure.add_scatter(
        x=[body.nodes[edge.source].x for edge in body.edges],
        y=[-body.nodes[edge.source].rank - 0.35 for edge in body.edges],
        mode="markers",
        marker={"color": colors["muted"], "size": 5},
        customdata=[safe(edge.says) for edge in body.edges],
        hovertemplate=_HOVER,
        showlegend=False,
        name="tensors",
    )
    named = len(body.nodes) <= _NAMED_NODES
    beside = Counter(node.rank for node in body.nodes)
    for series in body.series:
        nodes = [node for node in body.nodes if node.color == series.color]
        if nodes:
            figure.add_scatter(
                x=[node.x for node in nodes],
                y=[-node.rank for node in nodes],
                mode="markers+text" if named else "markers",
                name=safe(series.name),
                marker={"color": color(series.color), "size": 14, "symbol": "square"},
                text=[
                    safe(node.label if beside[node.rank] > 1 else f"{node.label}  {node.about}")
                    for node in nodes
                ],
                textposition="middle right",
                textfont={"color": colors["text"], "size": 11},
                customdata=[safe(node.says) for node in nodes],
                hovertemplate=_HOVER,
            )
    figure.data[0].showlegend = False
    low = min((node.x for node in body.nodes), default=0.0)
    high = max((node.x for node in body.nodes), default=0.0)
    figure.update_xaxes(visible=False, range=[low - 0.6, high + (2.4 if named else 0.6)])
    figure.update_yaxes(visible=False)
