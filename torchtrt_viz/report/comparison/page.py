"""A comparison of two runs as one HTML file that opens offline: what changed, then all that was compared.

Rows come from :func:`torchtrt_viz.analysis.compare`, in its order; the page computes nothing.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.analysis.core.humanize import count
from torchtrt_viz.charts.names import engine_label, layer_label
from torchtrt_viz.charts.written import duration
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.report.document import document
from torchtrt_viz.report.markup import escape, facts, table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["comparison_page", "write_comparison"]

_COLUMNS = {
    "name": "name",
    "verdict": "verdict",
    "change_pct": "change_pct",
    "a_ns": "before_ns",
    "b_ns": "after_ns",
    "low_pct": "low_pct",
    "high_pct": "high_pct",
    "domain": "domain",
    "level": "level",
    "run_id": "run_id",
    "a_samples": "samples_before",
    "b_samples": "samples_after",
    "basis": "basis",
}
_CHANGES = ("slower", "faster", "added", "removed")
_MOST_WORDS = 7
_MOST_ROWS = 500


def comparison_page(comparison: pd.DataFrame, before: str, after: str) -> str:
    """Return the page.

    Parameters
    ----------
    comparison
        What :func:`torchtrt_viz.analysis.compare` returned, whole.
    before, after
        What the two runs are called.
    """
    changed = comparison[comparison["verdict"].isin(_CHANGES)]
    rest = comparison[~comparison["verdict"].isin(_CHANGES)]
    counts = comparison["verdict"].value_counts()
    told = ", ".join(f"{int(counts[verdict]):,} {verdict}" for verdict in counts.index if counts[verdict])
    known = [("before", before), ("after", after), ("compared", told or "nothing")]
    sections = [("verdict", "Verdict", _verdict(comparison, changed))]
    for name, words, rows, note in (
        (
            "changed",
            "What changed",
            changed,
            "Beyond the noise within the runs.",
        ),
        ("unchanged", "What did not, or is not certain", rest, "same: any change is certainly small."),
    ):
        if len(rows):
            sections.append((name, words, _table(name, words, rows, note)))
    return document(
        title=f"{before} → {after}",
        header=f"<h1>What changed: {escape(before)} → {escape(after)}</h1>{facts(known)}",
        nav=[(name, words) for name, words, _ in sections],
        sections=[body for _, _, body in sections],
    )


def write_comparison(comparison: pd.DataFrame, path: str | PathLike[str], *, before: str, after: str) -> Path:
    """Write the page; it appears whole or not at all, and fetches nothing."""
    return write_atomically(path, comparison_page(comparison, before, after))


def _verdict(comparison: pd.DataFrame, changed: pd.DataFrame) -> str:
    outcome = str(comparison.attrs["outcome"])
    items = "".join(
        f'<li class="finding {row["domain"]}"><b>{escape(_head(row))}</b><p>{escape(_evidence(row))}</p></li>'
        for row in changed.head(_MOST_WORDS).to_dict("records")
    )
    more = len(changed) - _MOST_WORDS
    left = f'<p class="note">{count(more, "more change")} in the table below.</p>' if more > 0 else ""
    words = outcome if len(changed) else f"{outcome}: no change beyond the noise within the runs"
    return (
        f'<section id="verdict" class="verdict"><h2>Verdict</h2>'
        f'<p class="note">{escape(words)} · {escape(comparison.attrs["coverage"])}</p>'
        f"{f'<ol>{items}</ol>' if items else ''}{left}</section>"
    )


def _head(row: dict[Any, Any]) -> str:
    label = engine_label(row["name"]) if row["level"] == "delegate" else layer_label(row["name"])
    change = row["verdict"]
    if change in ("slower", "faster"):
        change = f"{abs(row['change_pct']):,.3g} % {change}"
    return f"{row['level']} {label}: {change}"


def _evidence(row: dict[Any, Any]) -> str:
    side = "GPU" if row["domain"] == "gpu" else "host"
    per = {"iteration": "per iteration", "call": "per call"}.get(row["basis"], "on average")
    if row["verdict"] in ("added", "removed"):
        where, value = ("after", "b_ns") if row["verdict"] == "added" else ("before", "a_ns")
        return f"Only {where}: {duration(row[value])} of {side} time {per}."
    return (
        f"{duration(row['a_ns'])} before, {duration(row['b_ns'])} after, of {side} time {per}; the change is "
        f"{row['low_pct']:+,.3g} to {row['high_pct']:+,.3g} %."
    )


def _table(name: str, words: str, rows: pd.DataFrame, note: str) -> str:
    find = '<input class="filter" type="search" placeholder="filter rows" aria-label="filter rows">'
    shown = rows[list(_COLUMNS)].rename(columns=_COLUMNS).reset_index(drop=True)
    body = table(shown, "compare", limit=_MOST_ROWS, searchable=False)
    return (
        f'<section id="{name}"><h2>{escape(words)}</h2><p class="note">{escape(note)}</p>'
        f"{find if len(rows) > 8 else ''}{body}</section>"
    )
