"""`ChartView`: the charts of a trace in a notebook, drawn as pictures that follow its theme."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, Any

from torchtrt_viz.charts.chart import Chart
from torchtrt_viz.charts.figure import markup, svg_file
from torchtrt_viz.charts.palette import style
from torchtrt_viz.charts.registry import CHARTS, chart
from torchtrt_viz.charts.written import escaped
from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError
from torchtrt_viz.report.static_html import table_html
from torchtrt_viz.scene import assets
from torchtrt_viz.widgets.figures.theme import note_theme
from torchtrt_viz.widgets.static_form import KeepsStaticForm, kept_id

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingDependencyError(error.name or "anywidget", "lab", "show charts in a notebook") from error

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData
    from torchtrt_viz.widgets.timeline import Timeline

__all__ = ["ChartView"]

_log = logging.getLogger(__name__)

_ROWS = 40


class ChartView(KeepsStaticForm, anywidget.AnyWidget):  # type: ignore[misc]
    """The charts of a trace, one at a time: those of reports, with the table behind each.

    They are made when the widget is first in sight, or by `make`. For figures that can be changed see
    `torchtrt_viz.widgets.charts`.

    Parameters
    ----------
    trace
        A `Trace`.
    timeline
        Timeline to link with: labels, and the critical path, lead to their spans there.
    theme
        As for the timeline.

    Attributes
    ----------
    chosen : str
        Name of the chart that is shown; setting it shows another.
    charts : dict
        The charts that have something to show, by name.
    frame : pandas.DataFrame
        The table behind the chart that is shown.
    """

    _esm = assets.module("chart_view")
    _css = style()

    names = traitlets.List(help="name and heading of each chart").tag(sync=True)
    chosen = traitlets.Unicode("").tag(sync=True)
    says = traitlets.Unicode("").tag(sync=True)
    markup = traitlets.Unicode("").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)
    linked = traitlets.Bool(False).tag(sync=True)
    kept = traitlets.Unicode(help="name of the static form that the notebook keeps").tag(sync=True)

    def __init__(self, trace: TraceData, *, timeline: Timeline | None = None, theme: str = "auto") -> None:
        self.trace = trace
        self.timeline = timeline
        self.charts: dict[str, Chart] = {}
        super().__init__(theme=theme, linked=timeline is not None, kept=kept_id())
        self.on_msg(self._on_message)
        self.observe(self._chosen, "chosen")

    def __repr__(self) -> str:
        return f"<ChartView: {', '.join(self.charts) or 'not made'}>"

    def make(self) -> None:
        """Make the charts."""
        if self.charts:
            return
        made = {name: chart(self.trace, name) for name in CHARTS}
        self.charts = {name: one for name, one in made.items() if one.body is not None}
        self.names = [[name, one.title] for name, one in self.charts.items()]
        if self.charts and self.chosen not in self.charts:
            self.chosen = next(iter(self.charts))
        else:
            self._draw()

    @property
    def frame(self) -> pd.DataFrame:
        """The table behind the chart that is shown.

        Raises
        ------
        OptionError
            When no chart has anything to show.
        """
        self.make()
        if self.chosen not in self.charts:
            raise OptionError(
                "chosen", self.chosen, f"one of {', '.join(self.charts) or 'no chart: nothing to show'}"
            )
        return self.charts[self.chosen].frame

    def static_form(self) -> str:
        """Return the chart that is shown as an image, and its table."""
        self.make()
        if not self.charts:
            return "<div>Nothing that charts show was recorded.</div>"
        one = self.charts[self.chosen]
        picture = base64.b64encode(svg_file(one, width=900, theme="light").encode()).decode()
        return (
            f'<img alt="{escaped(f"{one.title}. {one.says}")}" src="data:image/svg+xml;base64,{picture}">'
            f"{table_html(one.frame.reset_index(drop=True), one.table, rows=5)}"
        )

    def _chosen(self, _: Any) -> None:
        self.make()
        self._draw()

    def _draw(self) -> None:
        one = self.charts.get(self.chosen)
        if one is None:
            self.says, self.markup = "Nothing that charts show was recorded.", ""
            return
        rows = table_html(one.frame.reset_index(drop=True), one.table, rows=_ROWS)
        with self.hold_sync():
            self.says = one.says
            self.markup = f"{markup(one)}<details><summary>The table behind it</summary>{rows}</details>"

    def _on_message(self, _: Any, content: Any, __: Any) -> None:
        try:
            self._answer(content if isinstance(content, dict) else {})
        except TorchTrtVizError as error:
            _log.warning("the chart could not be shown: %s", error)

    def _answer(self, content: dict[str, Any]) -> None:
        if content.get("op") == "open":
            note_theme("dark" if content.get("dark") else "light")
            self.make()
        elif content.get("op") == "show" and self.timeline is not None:
            import pandas as pd

            request = content.get("request")
            wanted = request if isinstance(request, dict) else {}
            names, rows = wanted.get("names"), wanted.get("rows")
            if isinstance(names, list) and names:
                self.timeline.show(pd.DataFrame({"name": [str(name) for name in names]}))
            elif isinstance(rows, list):
                known = range(len(self.trace.spans))
                some = [row for row in rows if isinstance(row, int) and row in known]
                if some:
                    self.timeline.show(some, zoom=False)
