"""A chart before it is drawn: words, units and marks, whatever draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Axis",
    "Bar",
    "Bars",
    "Boxes",
    "Chart",
    "Columns",
    "Edge",
    "Graph",
    "Line",
    "Node",
    "Part",
    "Plot",
    "Point",
    "Series",
]


@dataclass(frozen=True)
class Series:
    """What has a colour in the legend: ``color`` is a key of `palette.color`."""

    name: str
    color: str


@dataclass(frozen=True)
class Part:
    """A piece of a bar: its series, its value in the chart's unit, and the words of its hover label."""

    series: int
    value: float
    says: str


@dataclass(frozen=True)
class Bar:
    """A bar: label, value as it is written, pieces from left to right.

    ``name`` is that of the spans that it stands for; empty: they cannot be found by a name. ``row`` is that
    of the one span of the trace that it stands for, where it is one.
    """

    label: str
    written: str
    parts: tuple[Part, ...]
    says: str = ""
    name: str = ""
    row: int | None = None


@dataclass(frozen=True)
class Bars:
    """Bars under each other. ``whole`` is the value of the full width; None: the longest bar's."""

    series: tuple[Series, ...]
    bars: tuple[Bar, ...]
    unit: str
    whole: float | None = None


@dataclass(frozen=True)
class Columns:
    """Counts by size: ``edges`` are the sizes between the columns, ``counts`` a list per series.

    ``says`` has the words of each column of each series.
    """

    series: tuple[Series, ...]
    edges: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]
    says: tuple[tuple[str, ...], ...]
    x: Axis
    y: Axis


@dataclass(frozen=True)
class Axis:
    """What is measured along an axis; ``unit`` is "ns", "byte", "" or words that follow a number."""

    title: str
    unit: str = ""
    log: bool = False
    zero: bool = False


@dataclass(frozen=True)
class Point:
    """One value in a plane."""

    x: float
    y: float
    series: int
    says: str


@dataclass(frozen=True)
class Line:
    """A line through points, or steps; ``dashed`` for limits and what is only held."""

    name: str
    color: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    step: bool = False
    says: str = ""


@dataclass(frozen=True)
class Plot:
    """Points and lines over two axes."""

    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    points: tuple[Point, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Boxes:
    """A flame graph, as columns of equal length.

    ``left`` and ``width`` are in the chart's unit; ``parent`` is the number of the box above, -1 none.
    """

    name: tuple[str, ...]
    depth: tuple[int, ...]
    left: tuple[float, ...]
    width: tuple[float, ...]
    color: tuple[str, ...]
    says: tuple[str, ...]
    whole: float
    parent: tuple[int, ...]


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes
    ----------
    name
        As in `torchtrt_viz.charts.registry.CHARTS`.
    title
        Heading, which says host or GPU where it is one of them.
    says
        One sentence: what this trace's chart shows.
    body
        The marks; None where there is nothing to draw.
    missing
        Why there is nothing, and what would record it.
    frame
        The table behind the marks, the text alternative of the picture.
    table
        Its schema's name.
    rows
        Rows of ``trace.spans`` that it is about, where it is about some.
    """

    name: str
    title: str
    says: str
    body: Bars | Columns | Plot | Boxes | Graph | None
    frame: pd.DataFrame
    table: str
    missing: str = ""
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Node:
    """A node of an engine's graph: ``rank`` is its row, ``x`` its place in widths of a node."""

    label: str
    kind: str
    about: str
    says: str
    color: str
    rank: int
    x: float
    pct: float | None
    layer: bool
    name: str


@dataclass(frozen=True)
class Edge:
    """A tensor from one node to another, with the places that it passes in the rows between."""

    source: int
    target: int
    about: str
    says: str
    via: tuple[float, ...]
    back: bool


@dataclass(frozen=True)
class Graph:
    """The graph of an engine. ``folds`` are rows, first and last, that are drawn as one until opened."""

    series: tuple[Series, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    folds: tuple[tuple[int, int], ...]
