"""`explore`: verdict, timeline and tables of a trace together, linked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtrt_viz.analysis.table_order import table_order, table_shares
from torchtrt_viz.errors import MissingDependencyError
from torchtrt_viz.widgets.chart_view import ChartView
from torchtrt_viz.widgets.static_form import KeepsStaticForm
from torchtrt_viz.widgets.table import Table
from torchtrt_viz.widgets.timeline import Timeline
from torchtrt_viz.widgets.verdict import VerdictPanel

try:
    import ipywidgets
except ImportError as error:
    raise MissingDependencyError("ipywidgets", "lab", "put widgets together") from error

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Explorer"]


class Explorer(KeepsStaticForm, ipywidgets.VBox):  # type: ignore[misc]
    """Verdict, timeline and tables of a trace: findings and rows of tables lead to their spans.

    The table that explains most of the trace comes first.

    Parameters
    ----------
    height, theme, color_by, whole_limit
        Of the timeline, as in `torchtrt_viz.widgets.Timeline`.

    Attributes
    ----------
    verdict : VerdictPanel
    timeline : Timeline
    tables : dict of Table
        By name; tables without rows are left out.
    charts : ChartView
        Made when their tab is first opened.
    selection : pandas.DataFrame
        What is selected in the timeline.
    """

    def __init__(
        self,
        trace: TraceData,
        *,
        height: int = 360,
        theme: str = "auto",
        color_by: str = "name",
        whole_limit: int = 300_000,
    ) -> None:
        self.trace = trace
        self.timeline = Timeline(
            trace, height=height, theme=theme, color_by=color_by, whole_limit=whole_limit
        )
        self.tables: dict[str, Table] = {}
        self.verdict = VerdictPanel(trace, self.timeline, theme=theme)
        covered = table_shares(trace)
        for name in table_order(trace, "explorer"):
            if name not in covered and name != "operators":  # those of graphs lie on no host thread
                continue
            made = Table(trace, name, timeline=self.timeline, height=260, theme=theme)
            if len(made.frame):
                self.tables[name] = made
            else:
                made.close()
        self.charts = ChartView(trace, timeline=self.timeline, theme=theme)
        tabs = ipywidgets.Tab(
            children=[*self.tables.values(), self.charts],
            titles=[*(name.capitalize() for name in self.tables), "Charts"],
        )
        super().__init__(children=[self.verdict, self.timeline, tabs])

    def __repr__(self) -> str:
        return f"<Explorer of {self.trace!r}: {', '.join(['verdict', 'timeline', *self.tables])}>"

    @property
    def kept(self) -> str:
        """Name of the static form that the notebook keeps: that of the timeline, which hides it."""
        return str(self.timeline.kept)

    def static_form(self) -> str:
        """Return verdict, strip of tracks and the first rows of every table as markup."""
        verdict = self.verdict.static_form()
        return "".join(
            [verdict, self.timeline.static_form(), *(one.static_form() for one in self.tables.values())]
        )

    @property
    def selection(self) -> Any:
        """The spans selected in the timeline: rows of ``trace.spans``."""
        return self.timeline.selection
