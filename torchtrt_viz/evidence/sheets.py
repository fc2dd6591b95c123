"""The tables of traces and sessions as sheets of a document, by the registry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz.analysis.catalogue import FRAMES, SESSION_TABLES, TABLES
from torchtrt_viz.evidence.envelope import Sheet
from torchtrt_viz.model.schema import EVENTS

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.session_data import SessionData
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["EVENT_FRAMES", "session_sheets", "sheet", "table_of", "title_of", "trace_sheets"]

EVENT_FRAMES = {schema.name: schema.meaning for schema in EVENTS}
"""The frames of a trace's events, and what one row of each is."""


def table_of(trace: TraceData, name: str) -> pd.DataFrame:
    """Return a table of a trace, or one of the frames of its events."""
    return cast("pd.DataFrame", getattr(trace, name)) if name in EVENT_FRAMES else TABLES[name](trace)


def title_of(name: str) -> str:
    """Return what a table of a trace shows, in words."""
    return EVENT_FRAMES[name] if name in EVENT_FRAMES else TABLES[name].title


def trace_sheets(
    trace: TraceData, expression: str, names: Iterable[str] = (), *, rows: int | None = None
) -> list[Sheet]:
    """Return tables of a trace; by default those of the terminal that have rows.

    Parameters
    ----------
    expression
        What loads the trace.
    names
        Tables, or frames of events.
    rows
        At most so many of each.
    """
    asked = tuple(names)
    out = []
    for name in asked or _by_worth(trace):
        frame = table_of(trace, name)
        if len(frame) or asked:
            made = f"{expression}.{name}" + ("" if name in EVENT_FRAMES else "()")
            out.append(sheet(name, frame, title_of(name), made, rows=rows))
    return out


def _by_worth(trace: TraceData) -> list[str]:
    """Return the tables of the terminal: the verdict, then what explains most of this trace."""
    # slow to import: it needs numpy
    from torchtrt_viz.analysis.table_order import table_order

    return [
        "verdict",
        *(name for name in table_order(trace, "terminal") if name not in ("verdict", "explain")),
    ]


def session_sheets(
    session: SessionData, expression: str, names: Iterable[str] = (), *, rows: int | None = None
) -> list[Sheet]:
    """Return the ranks of a session and tables over them; by default those of the terminal that have rows."""
    asked = tuple(names)
    out = [sheet("session.ranks", session.ranks, "Ranks", f"{expression}.ranks", rows=rows)]
    made: Any = cast("Any", session).overview()
    if not asked or "explain" in asked:
        found = made.explain()
        out.append(sheet("session.explain", found, "What stands out", f"{expression}.explain()", rows=rows))
    for name, table in SESSION_TABLES.items():
        if name in asked or (not asked and "terminal" in table.views):
            frame = getattr(made, name)
            if len(frame) or asked:
                of = f"{expression}.overview().{name}"
                out.append(sheet(f"session.{name}", frame, table.title, of, rows=rows))
    return out


def sheet(
    name: str, frame: pd.DataFrame, title: str, expression: str | None, *, rows: int | None = None
) -> Sheet:
    """Return a frame as a sheet; its columns are those that `FRAMES` documents under the name."""
    shown = frame if rows is None else frame.head(rows)
    shown.attrs.update(frame.attrs)
    return Sheet(name, shown, FRAMES.get(name), title, expression, row_count=len(frame))
