"""Charts as sections of a page: heading, a sentence, the picture, and the table behind it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from torchtrt_viz.charts.chart import Chart
from torchtrt_viz.charts.figure import markup
from torchtrt_viz.charts.registry import CHARTS, chart
from torchtrt_viz.errors import OptionError
from torchtrt_viz.report.markup import escape, table

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["chart_sections"]

_MOST_ROWS = 60


def chart_sections(
    trace: TraceData, names: Sequence[str] | None, tables: Container[str]
) -> list[tuple[str, str, str]]:
    """Return id, heading and markup of each chart that has something to show.

    Parameters
    ----------
    names
        Some of the charts, in this order; one that is named and has nothing to show says why. None: all that
        have something.
    tables
        Tables that the page shows; a chart of one of them leads to it instead of repeating it.

    Raises
    ------
    OptionError
        For a name that is no chart.
    """
    unknown = [name for name in names or () if name not in CHARTS]
    if unknown:
        raise OptionError("charts", unknown, f"any of {', '.join(CHARTS)}")
    found = []
    for name in CHARTS if names is None else names:
        one = chart(trace, name)
        if one.body is not None or names is not None:
            found.append((f"chart-{name}", one.title, _section(one, tables)))
    return found


def _section(one: Chart, tables: Container[str]) -> str:
    behind = ""
    if one.table in tables:
        behind = f'<p class="note"><a href="#{one.table}">The table behind it</a></p>'
    elif len(one.frame):
        rows = table(one.frame.reset_index(drop=True), one.table, limit=_MOST_ROWS)
        behind = f'<details class="behind"><summary>The table behind it</summary>{rows}</details>'
    says = f'<p class="note">{escape(one.says)}</p>' if one.says else ""
    return f'<section id="chart-{one.name}"><h2>{escape(one.title)}</h2>{says}{markup(one)}{behind}</section>'
