"""The part of a session's page that says where ranks hang: each row with its stack, then the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.analysis.hangs.words import rank_ranges
from torchtrt_viz.report.columns import missing
from torchtrt_viz.report.markup import escape
from torchtrt_viz.report.session_facts import moment

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["hangs_table", "positions_table", "stacks"]

_MOST_STACKS = 20
_RANKS = ("waiting", "missing", "differing", "no_dump")
#: What the sentences and the stacks say better than narrow columns.
_NOT_SHOWN = ("finding", "why", "stack", "backend", "group_size", "last_operation")


def hangs_table(hangs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows for display: ranks as ranges, times as text, without columns that are empty."""
    out = hangs.drop(columns=list(_NOT_SHOWN))
    for column in _RANKS:
        out[column] = [", ".join(rank_ranges(ranks)) or None for ranks in out[column]]
    return _with_moments(out.dropna(axis=1, how="all"))


def positions_table(positions: pd.DataFrame) -> pd.DataFrame:
    """Return the positions, those furthest behind first, times as text."""
    out = positions.drop(columns=["stack"]).dropna(axis=1, how="all")
    return _with_moments(out.sort_values("behind", ascending=False, kind="stable") if len(out) else out)


def stacks(hangs: pd.DataFrame) -> str:
    """Return the sentences of the first rows, each with how it is known and the recorded stack to open."""
    parts = []
    for row in hangs.head(_MOST_STACKS).to_dict("records"):
        known = f"{row['certainty']}: {row['why']}"
        why = "" if missing(row["why"]) else f'<p class="note">{escape(known)}</p>'
        lines = [] if missing(row["stack"]) else str(row["stack"]).split("\n")
        stack = f"<pre>{chr(10).join(map(escape, lines))}</pre>" if lines else ""
        if stack or why:
            parts.append(
                f'<details class="stack"><summary>{escape(row["finding"])}</summary>{why}{stack}</details>'
            )
    return "".join(parts)


def _with_moments(frame: pd.DataFrame) -> pd.DataFrame:
    """Write Unix times as the rank's clock showed them, in UTC."""
    if "since_unix_ns" in frame:
        told = [None if missing(ns) else moment(int(ns)) for ns in frame["since_unix_ns"]]
        at = list(frame.columns).index("since_unix_ns")
        frame = frame.drop(columns=["since_unix_ns"])
        frame.insert(at, "since", told)
    return frame
