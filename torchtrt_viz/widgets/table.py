"""`Table`: a trace's tables in a notebook, linked with its timeline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError
from torchtrt_viz.report.columns import show
from torchtrt_viz.report.table import with_units, write_table
from torchtrt_viz.scene import assets
from torchtrt_viz.widgets.spans_of import KNOWN, rows_of
from torchtrt_viz.widgets.static_form import KeepsStaticForm, kept_id

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingDependencyError(error.name or "anywidget", "lab", "show tables in a notebook") from error

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData
    from torchtrt_viz.widgets.timeline import Timeline

__all__ = ["Table"]

_log = logging.getLogger(__name__)


class Table(KeepsStaticForm, anywidget.AnyWidget):  # type: ignore[misc]
    """One table of a trace to sort, filter, regroup and export; choosing rows marks their spans.

    Parameters
    ----------
    what
        A `Trace`, or any frame.
    table
        Which table of the trace, one of those whose rows stand for spans: operators, kernels, ...
    by
        What else tells operators apart: shape, dtype, op_type, module, source, stack, track, iteration,
        run_id, kind, node, provider (see :func:`torchtrt_viz.analysis.operators`).
    timeline
        Timeline to link with: chosen rows mark their spans there, spans selected there mark their rows here.
    max_rows
        Rows that are sent to the browser, the first ones of the frame.
    height, theme
        As for the timeline.

    Attributes
    ----------
    frame : pandas.DataFrame
        The whole table.
    selection : pandas.DataFrame
        The rows that are chosen in the widget.
    """

    _esm = assets.module("table")
    _css = assets.style("timeline", "table")

    by = traitlets.List(traitlets.Unicode()).tag(sync=True)
    sort = traitlets.Dict().tag(sync=True)
    filter = traitlets.Unicode("").tag(sync=True)
    columns = traitlets.List(traitlets.Unicode(), help="columns shown; empty: those with values").tag(
        sync=True
    )
    chosen = traitlets.List(traitlets.Int(), help="positions of the chosen rows").tag(sync=True)
    marked = traitlets.List(traitlets.Int(), help="positions of rows whose spans are selected").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)
    height = traitlets.Int(320).tag(sync=True)
    version = traitlets.Int(0).tag(sync=True)
    kept = traitlets.Unicode(help="name of the static form that the notebook keeps").tag(sync=True)

    def __init__(
        self,
        what: TraceData | pd.DataFrame,
        table: str = "operators",
        *,
        by: str | Sequence[str] = (),
        timeline: Timeline | None = None,
        max_rows: int = 5_000,
        height: int = 320,
        theme: str = "auto",
    ) -> None:
        import pandas as pd

        given = what if isinstance(what, pd.DataFrame) else None
        self.trace: TraceData | None = None if isinstance(what, pd.DataFrame) else what
        if self.trace is not None and table not in KNOWN:
            raise OptionError("table", table, f"one of {', '.join(KNOWN)}")
        if by and (self.trace is None or table != "operators"):
            raise OptionError("by", by, "only for the operators of a trace")
        self.table = table if self.trace is not None else ""
        self.max_rows = max_rows
        self._trouble = ""
        self._timelines: list[Timeline] = []
        chosen_by = [by] if isinstance(by, str) else list(by)
        self.frame: pd.DataFrame = self._compute(chosen_by) if given is None else given
        super().__init__(by=chosen_by, height=height, theme=theme, kept=kept_id())
        self.on_msg(self._on_message)
        self.observe(self._regroup, "by")
        self.observe(self._chosen, "chosen")
        if timeline is not None:
            self.link(timeline)

    def __repr__(self) -> str:
        return f"<Table of {len(self.frame)} rows{f' ({self.table})' if self.table else ''}>"

    @property
    def selection(self) -> pd.DataFrame:
        """The chosen rows of `frame`, in the frame's order."""
        rows = sorted({row for row in self.chosen if 0 <= row < len(self.frame)})
        return self.frame.iloc[rows]

    @property
    def spans(self) -> pd.DataFrame:
        """The spans of the chosen rows: rows of ``trace.spans``."""
        if self.trace is None:
            raise TorchTrtVizError("this table was made from a frame: it knows of no spans")
        rows = rows_of(self.trace, self.table, self.selection, list(self.by))
        return self.trace.spans.iloc[rows]

    def static_form(self, *, rows: int = 10) -> str:
        """Return the first rows as markup that needs neither scripts nor style sheets."""
        # slow to import: it needs pandas
        from torchtrt_viz.report.static_html import table_html

        return table_html(self.frame, self.table, heading=self._title(), rows=rows)

    def link(self, timeline: Timeline) -> None:
        """Link with a timeline of the same trace, both ways.

        Raises
        ------
        OptionError
            For a timeline of another trace.
        """
        if self.trace is None or all(part.trace is not self.trace for part in timeline.scene.parts):
            raise OptionError("timeline", timeline, "a timeline of the same trace as the table")
        self._timelines.append(timeline)
        timeline.observe(lambda _: self._mark(timeline), "selected")

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the whole table: see :func:`torchtrt_viz.report.table.write_table`."""
        return write_table(self.frame, path, name=self.table)

    # -- reactions -----------------------------------------------------------------------------------

    def _title(self) -> str:
        return TABLES[self.table].title if self.table in TABLES else self.table

    def _compute(self, by: list[str]) -> pd.DataFrame:
        options = {"by": by} if by else {}
        return TABLES[self.table](self.trace, **options)

    def _regroup(self, change: dict[str, Any]) -> None:
        if self.trace is None:
            return
        try:
            self.frame = self._compute(list(change["new"]))
            self._trouble = ""
        except OptionError as error:
            self._trouble = str(error)
        self.chosen = []
        self.marked = []
        self.version += 1

    def _chosen(self, _: dict[str, Any]) -> None:
        if self.trace is None:
            return
        for timeline in self._timelines:
            selection = self.selection
            timeline.show(None if selection.empty else self.spans, zoom=False)

    def _mark(self, timeline: Timeline) -> None:
        selected = timeline.selection
        source = KNOWN[self.table]
        if selected.empty or source.column not in self.frame.columns:
            self.marked = []
            return
        names = set(selected[source.field].astype(object).dropna().map(str))
        self.marked = np.flatnonzero(self.frame[source.column].map(str).isin(names)).tolist()[: self.max_rows]

    def _on_message(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        if content.get("op") != "open":
            self.send({"reply": content.get("id"), "error": f"unknown request {content.get('op')!r}"})
            return
        try:
            answer = self._data()
        except Exception as error:  # the front end waits for an answer whatever happens
            _log.exception("table request failed")
            answer = {"error": f"{type(error).__name__}: {error}"}
        self.send({**answer, "reply": content.get("id")})

    def _data(self) -> dict[str, Any]:
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.core.attributes import ATTRIBUTES

        frame = self.frame
        headers = with_units(frame).columns.tolist()
        keys = [str(column) for column in frame.columns]
        columns = [
            {
                "key": column.column,
                "title": column.title,
                "header": headers[keys.index(column.column)],
                "kind": column.kind,
                "texts": column.texts,
                "keys": column.keys or [],
                "values": column.values if column.numeric else [],
                "empty": bool(frame[column.column].isna().all()) if len(frame) else False,
            }
            for column in show(frame, self.table, limit=self.max_rows, readable=True)
        ]
        rows = min(len(frame), self.max_rows)
        return {
            "name": self.table,
            "title": self._title(),
            "rows": rows,
            "columns": columns,
            "by": list(self.by),
            "by_choices": list(ATTRIBUTES) if self.table == "operators" else [],
            "left_out": f"{len(frame) - rows:,} more are not shown" if len(frame) > rows else "",
            "trouble": self._trouble,
        }
