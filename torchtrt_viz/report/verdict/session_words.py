"""What the verdict over the ranks of a session says, in the words that every view shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.session.session_judgement import RankBar, rank_bars, session_verdict
from torchtrt_viz.charts.written import one_line
from torchtrt_viz.report.verdict.words import BarWords, FindingWords, VerdictWords

if TYPE_CHECKING:
    from torchtrt_viz.analysis.session.overview_frames import OverviewFrames

__all__ = ["session_words"]


def session_words(made: OverviewFrames, *, top: int = 7) -> VerdictWords:
    """Return the words for the verdict over the ranks whose tables these are."""
    length = made.totals["length_ns"].dropna()
    longest = f", the longest {duration(float(length.max()))}" if len(length) else ""
    table = session_verdict(made, top=top)
    return VerdictWords(
        f"{count(len(made.totals), 'recording')}{longest}",
        tuple(_bar(bar) for bar in rank_bars(made)),
        tuple(
            FindingWords(
                head=one_line(row["finding"]),
                evidence="" if row["evidence"].rstrip(".") == row["finding"] else one_line(row["evidence"]),
                saving=one_line(_saving(row)),
                remedy="",
                domain="host",
                frame=row["frame"],
                place="",
                shown=False,
                table=row["table"],
            )
            for row in table.to_dict("records")
        ),
    )


def _bar(bar: RankBar) -> BarWords:
    label = "HOST" if bar.domain == "host" else "GPU"
    if bar.pct is None or bar.least is None or bar.most is None:
        side = "the hosts" if bar.domain == "host" else "a GPU"
        return BarWords(label, bar.domain, None, f"no work of {side} was recorded")
    each = f", {bar.least:.3g} to {bar.most:.3g} %" if bar.recordings > 1 else ""
    over = f" of the time of {count(bar.recordings, 'recording')}"
    return BarWords(label, bar.domain, bar.pct, f"{bar.pct:.3g} % busy{over}{each}")


def _saving(row: dict[Any, Any]) -> str:
    saving, share = row["could_save_ns"], row["could_save_pct"]
    if pd.isna(saving):
        return f"saving not known: {row['basis']}"
    part = "" if pd.isna(share) else f", {share:.3g} % of the longest recording"
    return f"could save {duration(saving)}{part}: {row['basis']}"
