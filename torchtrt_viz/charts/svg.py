"""Charts as SVG that fits any width: places along the x axis are shares of the width, heights are pixels.

The same markup stands in a page, which gives it the width of the window, and in a file of a given width. Text
keeps its size. Names are escaped; every mark says its name and value when pointed at.
"""

from __future__ import annotations

import json
import math
from typing import Any

from torchtrt_viz.charts.chart import Bars, Boxes, Columns, Line, Plot, Series
from torchtrt_viz.charts.palette import css_class
from torchtrt_viz.charts.scales import Scale, written
from torchtrt_viz.charts.written import escaped, shortened

__all__ = ["BOX", "LONGEST_LABEL", "draw", "legend_of"]

LONGEST_LABEL = 60
"""Characters of a bar's label and the value beside it: they fit 430 px."""
BOX = 19
"""Height of a row of a flame graph, px."""

_BAR = 31  # from one bar to the next, px: its words stand above it
_PLOT = 260
_FOOT = 36  # numbers and title of the x axis
_HEAD = 18  # title of the y axis
_STEPS = 1200  # columns of a line with steps


def draw(body: Any) -> tuple[str, int]:
    """Return the marks as SVG elements, and the height that they take in pixels."""
    if isinstance(body, Bars):
        return _bars(body)
    if isinstance(body, Columns):
        return _columns(body)
    if isinstance(body, Plot):
        return _plot(body)
    if isinstance(body, Boxes):
        return _boxes(body)
    raise TypeError(f"cannot draw {type(body).__name__}")


def legend_of(body: Any) -> tuple[Series, ...]:
    """Return what the legend names: nothing where one colour speaks for itself."""
    if isinstance(body, Plot):
        lines = {line.name: Series(line.name, line.color) for line in body.lines if line.name}
        points = {one.name: one for one in body.series} if len(body.series) > 1 or lines else {}
        return tuple({**points, **lines}.values())
    series: tuple[Series, ...] = getattr(body, "series", ())
    if isinstance(body, Bars):
        used = {part.series for bar in body.bars for part in bar.parts if part.value > 0}
        if len(series) > 1:
            return tuple(one for at, one in enumerate(series) if at in used)
    return series if len(series) > 1 else ()


def _share(value: float) -> str:
    return f"{100 * value:.3f}".rstrip("0").rstrip(".") + "%"


def _title(text: str) -> str:
    return f"<title>{escaped(text)}</title>"


def _bars(body: Bars) -> tuple[str, int]:
    whole = body.whole or max((sum(part.value for part in bar.parts) for bar in body.bars), default=0.0)
    out = []
    for at, bar in enumerate(body.bars):
        y = at * _BAR
        hover = _title(bar.says) if bar.says else ""
        show = ""
        if bar.name or bar.row is not None:
            wanted = {"names": [bar.name]} if bar.row is None else {"rows": [bar.row]}
            show = f' data-show="{escaped(json.dumps(wanted))}"'
        label = shortened(bar.label, max(16, LONGEST_LABEL - len(bar.written)))
        out.append(
            f'<text{show} y="{y + 12}">{hover}{escaped(label)}</text>'
            f'<text class="e" x="100%" y="{y + 12}">{escaped(bar.written)}</text>'
            f'<rect class="t" y="{y + 16}" width="100%" height="10"/>'
        )
        left = 0.0
        divided = ' style="stroke:var(--c-back)"' if len(bar.parts) > 1 else ""
        for part in bar.parts:
            if part.value > 0 and whole > 0:
                out.append(
                    f'<rect class="{css_class(body.series[part.series].color)}" x="{_share(left / whole)}" '
                    f'y="{y + 16}" width="{_share(part.value / whole)}" height="10" '
                    f"{divided if part.value > whole / 250 else ''}>"
                    f"{_title(part.says)}</rect>"
                )
            left += part.value
    return "".join(out), max(_BAR * len(body.bars), 1)


def _frame(x: Scale, y: Scale, height: int, marks: str) -> str:
    """Draw grid, marks and numbers: those of the y axis stand on their lines, so that no width is lost."""
    out = [f'<text class="m" y="11">{escaped(y.axis.title)}</text>']
    heights = [(value, _HEAD + height * (1 - y.at(value))) for value in y.ticks(4)]
    out += [f'<line class="g" x1="0" x2="100%" y1="{at:.1f}" y2="{at:.1f}"/>' for _, at in heights]
    out.append(marks)
    for value, at in heights:
        out.append(f'<text class="m h" x="2" y="{at - 3:.1f}">{escaped(written(value, y.axis.unit))}</text>')
    bottom = _HEAD + height
    out.append(f'<line class="g" x1="0" x2="100%" y1="{bottom}" y2="{bottom}"/>')
    for value in x.ticks(5):
        at = x.at(value)
        anchor = "" if at < 0.04 else " e" if at > 0.95 else " c"
        out.append(
            f'<line class="g" x1="{_share(at)}" x2="{_share(at)}" y1="{bottom}" y2="{bottom + 5}"/>'
            f'<text class="m{anchor}" x="{_share(at)}" y="{bottom + 16}">'
            f"{escaped(written(value, x.axis.unit))}</text>"
        )
    out.append(f'<text class="m e" x="100%" y="{bottom + 31}">{escaped(x.axis.title)}</text>')
    return "".join(out)


def _columns(body: Columns) -> tuple[str, int]:
    height = 200
    x = Scale.of(body.x, body.edges, 0.01)
    sums = [sum(values) for values in zip(*body.counts, strict=True)]
    y = Scale.of(body.y, [0.0, *sums], 0.12)
    out: list[str] = []
    for at in range(len(sums)):
        left, right = x.at(body.edges[at]), x.at(body.edges[at + 1])
        below = 0.0
        for series, counts in enumerate(body.counts):
            if not counts[at]:
                continue
            low, high = y.at(below), y.at(below + counts[at])
            out.append(
                f'<rect class="{css_class(body.series[series].color)}" x="{_share(left)}" '
                f'y="{_HEAD + height * (1 - high):.1f}" width="{_share((right - left) * 0.94)}" '
                f'height="{max(height * (high - low), 0.8):.1f}">{_title(body.says[series][at])}</rect>'
            )
            below += counts[at]
    return _frame(x, y, height, "".join(out)), _HEAD + height + _FOOT


def _plot(body: Plot) -> tuple[str, int]:
    xs = [*(point.x for point in body.points), *(value for line in body.lines for value in line.x)]
    ys = [*(point.y for point in body.points), *(value for line in body.lines for value in line.y)]
    x, y = Scale.of(body.x, xs), Scale.of(body.y, ys, 0.06)
    out = [_line(line, x, y) for line in body.lines]
    for point in body.points:
        out.append(
            f'<circle class="{css_class(body.series[point.series].color)}" cx="{_share(x.at(point.x))}" '
            f'cy="{_HEAD + _PLOT * (1 - y.at(point.y)):.1f}" r="4">{_title(point.says)}</circle>'
        )
    return _frame(x, y, _PLOT, "".join(out)), _HEAD + _PLOT + _FOOT


def _line(line: Line, x: Scale, y: Scale) -> str:
    """Draw a line in a box of 1000 units that the picture stretches; the line keeps its thickness."""
    places = [(1000 * x.at(a), _PLOT * (1 - y.at(b))) for a, b in zip(line.x, line.y, strict=True)]
    if not places:
        return ""
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}" + (
        _steps(places) if line.step else "".join(f"L{a:.1f} {b:.1f}" for a, b in places[1:])
    )
    dashed = " d" if line.dashed else ""
    hover = _title(line.says or line.name)
    return (
        f'<svg x="0" y="{_HEAD}" width="100%" height="{_PLOT}" viewBox="0 0 1000 {_PLOT}" '
        f'preserveAspectRatio="none"><path class="l {css_class(line.color)}{dashed}" '
        f'style="fill:none" vector-effect="non-scaling-stroke" d="{path}">{hover}</path></svg>'
    )


def _steps(places: list[tuple[float, float]]) -> str:
    """Write steps; where several fall into one column of the picture, its lowest and highest value."""
    out: list[str] = []
    column, low, high, last = -1, 0.0, 0.0, places[0][1]
    for left, top in places[1:]:
        here = math.floor(left * _STEPS / 1000)
        if here == column:
            low, high, last = min(low, top), max(high, top), top
            continue
        if column >= 0:
            out.append(_column(column, low, high, last))
        column, low, high = here, min(top, last), max(top, last)
        last = top
    if column >= 0:
        out.append(_column(column, low, high, last))
    out.append("H1000")
    return "".join(out)


def _column(column: int, low: float, high: float, last: float) -> str:
    return f"H{1000 * column / _STEPS:.1f}V{low:.1f}V{high:.1f}V{last:.1f}"


def _boxes(body: Boxes) -> tuple[str, int]:
    out = []
    rows = zip(body.name, body.depth, body.left, body.width, body.color, body.says, strict=True)
    for at, (name, depth, left, width, color, says) in enumerate(rows):
        begin, share = (left / body.whole, width / body.whole) if body.whole else (0.0, 0.0)
        out.append(
            f'<svg class="b" data-p="{body.parent[at]}" data-l="{escaped(name)}" x="{_share(begin)}" '
            f'y="{depth * BOX}" width="{_share(share)}" height="{BOX - 1}">'
            f'<rect class="{css_class(color)}" width="100%" height="100%"/>'
            f'<text class="o" x="4" y="13">{escaped(shortened(name, 90)) if share > 0.012 else ""}</text>'
            f"{_title(says)}</svg>"
        )
    return "".join(out), BOX * (max(body.depth, default=-1) + 1) + 1
