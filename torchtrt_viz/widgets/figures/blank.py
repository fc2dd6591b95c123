"""An empty figure, and the units and labels of those that are filled."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.charts.palette import GPU, HOST, theme_colors
from torchtrt_viz.charts.written import one_line, shortened
from torchtrt_viz.errors import MissingDependencyError
from torchtrt_viz.widgets.figures.theme import theme_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["apart", "blank", "label", "plotly", "safe", "say_nothing", "unit_of"]

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_LONGEST_LABEL = 46


def plotly() -> Any:
    """Return plotly's graph objects.

    Raises
    ------
    MissingDependencyError
        Without plotly (extra: lab).
    """
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise MissingDependencyError("plotly", "lab", "draw charts") from error
    return go


def blank(title: str, height: int | None, theme: str) -> go.Figure:
    """Return a figure without data, in the colours of a theme."""
    figure = plotly().Figure()
    import plotly.io as pio  # with plotly, which is optional

    colors = theme_colors(theme_of(theme, str(pio.templates.default or "")))
    axis = {"gridcolor": colors["line"], "linecolor": colors["line"], "zerolinecolor": colors["line"]}
    figure.update_layout(
        title={
            "text": safe(title),
            "font": {"size": 15},
            "x": 0.01,
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
        },
        height=height,
        template="plotly_dark" if colors["back"] != "#ffffff" else "plotly_white",
        autosize=True,
        colorway=[*GPU, *HOST],
        font={"color": colors["text"]},
        paper_bgcolor=colors["back"],
        plot_bgcolor=colors["back"],
        xaxis=axis,
        yaxis=axis,
        margin={"l": 70, "r": 20, "t": 78, "b": 46},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        hoverlabel={
            "align": "left",
            "bgcolor": colors["panel"],
            "bordercolor": colors["muted"],
            "font": {"color": colors["text"]},
        },
    )
    return figure


def say_nothing(figure: go.Figure, why: str) -> None:
    """Write on an empty figure why it is empty."""
    figure.add_annotation(
        text=safe(why), showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5, font={"size": 14}
    )


def unit_of(values: Iterable[float]) -> tuple[float, str]:
    """Return the unit that suits the largest duration: its size in ns and its name."""
    most = max((float(value) for value in values if not pd.isna(value)), default=0.0)
    return next((size, unit) for size, unit in _UNITS if most >= size or size == 1.0)


def safe(text: Any) -> str:
    """Return text that plotly shows as it is: it reads tags and a few entities, quotes not among them."""
    return html.escape(one_line(text), quote=False)


def label(name: Any) -> str:
    """Return a name short enough for an axis."""
    return safe(shortened(name, _LONGEST_LABEL))


def apart(labels: list[str]) -> list[str]:
    """Keep equal labels as categories of their own."""
    seen: dict[str, int] = {}
    out = []
    for text in labels:
        seen[text] = seen.get(text, 0) + 1
        out.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return out
