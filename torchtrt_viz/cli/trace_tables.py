"""A trace on the terminal: what loading noted, the verdict, then its tables, the biggest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchtrt_viz.cli.output import heading, print_frame, print_questions, print_text, print_warnings
from torchtrt_viz.evidence.sheets import table_of, title_of

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.trace import Trace

__all__ = ["print_trace"]


def print_trace(trace: Trace, tables: Sequence[str] = (), *, limit: int = 20, wide: bool = False) -> None:
    """Print a trace.

    Parameters
    ----------
    tables
        Those to print; by default the verdict and every table that has something to say.
    limit
        Rows of each.
    wide
        Shorten no names, leave out no columns.
    """
    print_warnings(trace.meta["warnings"])
    # slow to import: it needs pandas
    from torchtrt_viz.cli.verdict import print_verdict, tables_behind

    if not tables or "verdict" in tables:
        print_verdict(trace)
    for name in tables or tables_behind(trace):
        if name == "verdict":
            continue
        frame = table_of(trace, name)
        if len(frame) == 0:
            if tables:
                heading(f"{name}: nothing of it was recorded")
            continue
        heading(f"{name}: {title_of(name)}")
        if name == "questions":
            print_questions(frame)
        elif name == "explain":
            _print_findings(frame)
        else:
            print_frame(frame, table=name, limit=None if name == "summary" else limit, wide=wide)
            if frame.attrs.get("coverage"):
                print_text(frame.attrs["coverage"])


def _print_findings(frame: pd.DataFrame) -> None:
    for text in frame["finding"]:
        print_text(text, "- ", "  ")
