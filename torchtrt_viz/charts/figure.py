"""A drawn chart: as markup of a page, and as a file of its own."""

from __future__ import annotations

import json

from torchtrt_viz.charts.chart import Chart, Graph
from torchtrt_viz.charts.palette import css_class, style
from torchtrt_viz.charts.plan_svg import draw_graph, measures
from torchtrt_viz.charts.svg import draw, legend_of
from torchtrt_viz.charts.written import escaped
from torchtrt_viz.errors import OptionError

__all__ = ["markup", "svg_file"]

_CHARACTER = 6.8  # width of one, px


def markup(chart: Chart) -> str:
    """Return a chart as a figure of a page that has `palette.style`: legend and picture."""
    if chart.body is None:
        return f'<p class="note">{escaped(chart.missing)}</p>'
    series = legend_of(chart.body)
    words = f'role="img" aria-label="{escaped(f"{chart.title}. {chart.says}")}"'
    if isinstance(chart.body, Graph):
        inner, width, height = draw_graph(chart.body)
        picture = (
            f'<div class="tv-scroll" tabindex="0" aria-label="{escaped(chart.title)}"><svg {words} '
            f'data-m="{measures(chart.body)}" width="{width}" height="{height}">{inner}</svg></div>'
        )
    else:
        inner, height = draw(chart.body)
        picture = f'<svg {words} width="100%" height="{height}">{inner}</svg>'
    show = ""
    if chart.rows:
        request = escaped(json.dumps({"rows": chart.rows, "zoom": False}, separators=(",", ":")))
        show = f'<button type="button" class="tv-show" data-show="{request}">mark on the timeline</button>'
    legend = "".join(f'<li><i class="{css_class(one.color)}"></i>{escaped(one.name)}</li>' for one in series)
    return (
        f'<figure class="tv-pic" data-chart="{escaped(chart.name)}">'
        + (f'<ul class="tv-legend">{legend}</ul>' if legend else "")
        + f"{show}{picture}</figure>"
    )


def svg_file(chart: Chart, *, width: int = 1000, theme: str = "light") -> str:
    """Return a chart as the text of an SVG file: heading, sentence, legend and marks.

    An engine's graph is as wide as it needs to be, at least ``width``.

    Raises
    ------
    OptionError
        For a width below 320 or above 20000 pixels, and a theme that there is not.
    """
    if not 320 <= width <= 20_000:
        raise OptionError("width", width, "320 to 20000 pixels")
    sheet = style(theme)
    inner, height = "", 0
    if isinstance(chart.body, Graph):
        inner, least, height = draw_graph(chart.body)
        width = max(width, least + 24)
    elif chart.body is not None:
        inner, height = draw(chart.body)
    room = width - 24
    words = _wrapped(chart.says if chart.body is not None else chart.missing, int(room / 6.4))
    out = [f'<text y="16" style="font-size:15px;font-weight:600">{escaped(chart.title)}</text>']
    y = 34
    for line in words:
        out.append(f'<text class="m" y="{y}">{escaped(line)}</text>')
        y += 15
    x = 0.0
    series = legend_of(chart.body) if chart.body is not None else ()
    for one in series:
        wide = 18 + _CHARACTER * len(one.name) + 16
        if x and x + wide > room:
            x, y = 0.0, y + 17
        out.append(
            f'<rect class="{css_class(one.color)}" x="{x:.0f}" y="{y - 8}" width="12" height="12"/>'
            f'<text x="{x + 18:.0f}" y="{y + 2}">{escaped(one.name)}</text>'
        )
        x += wide
    y += 18 if series else 2
    whole = y + height + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tv-pic" width="{width}" height="{whole + 12}" '
        f'viewBox="0 0 {width} {whole + 12}"><style>{sheet}</style>'
        f'<rect width="{width}" height="{whole + 12}" style="fill:var(--c-back)"/>'
        f'<svg x="12" y="12" width="{room}" height="{whole}">{"".join(out)}'
        f'<svg y="{y}" width="100%" height="{height}">{inner}</svg></svg></svg>\n'
    )


def _wrapped(text: str, width: int) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines
