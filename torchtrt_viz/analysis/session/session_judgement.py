"""The verdict over the ranks of a session: how busy they were, and what their findings could save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.analysis.columns.sessions import VERDICT
from torchtrt_viz.analysis.core.tables import floats, text
from torchtrt_viz.analysis.session.findings import session_findings
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.analysis.session.overview_frames import OverviewFrames

__all__ = ["RankBar", "rank_bars", "session_verdict"]

_FRAMES = {"roles": "session.overview().roles"}
_KINDS = {"hangs": "hang", "stragglers": "late rank", "operators": "imbalance", "roles": "steps"}


@dataclass(frozen=True)
class RankBar:
    """Busy share of one side over all recordings that have it, in percent: of all their time, least, most."""

    domain: str
    recordings: int
    pct: float | None
    least: float | None = None
    most: float | None = None


def rank_bars(made: OverviewFrames) -> list[RankBar]:
    """Return how busy hosts and devices were: busy time over the length of the recordings."""
    out = []
    for domain in ("host", "gpu"):
        mine = made.strips[(made.strips["domain"] == domain) & (made.strips["length_ns"] > 0)]
        if not len(mine):
            out.append(RankBar(domain, 0, None))
            continue
        share = 100.0 * mine["busy_ns"].astype("float64") / mine["length_ns"].astype("float64")
        whole = 100.0 * float(mine["busy_ns"].sum()) / float(mine["length_ns"].sum())
        out.append(RankBar(domain, len(mine), whole, float(share.min()), float(share.max())))
    return out


@returns(VERDICT)
def session_verdict(made: OverviewFrames, *, top: int = 7) -> pd.DataFrame:
    """Say what holds the ranks of a session up, and what that could save.

    Parameters
    ----------
    made
        The session's tables.
    top
        How many findings at most.

    Returns
    -------
    pandas.DataFrame
        One row per finding: who hangs first, then by the time that could be saved, then the others.

    Raises
    ------
    OptionError
        For a ``top`` below 1.
    """
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise OptionError("top", top, "a number of findings, 1 or more")
    found = session_findings(made, top=2 * top)
    length = made.totals["length_ns"].dropna()
    window = float(length.max()) if len(length) else float("nan")
    rows = [_row(made, found.iloc[at], window) for at in range(len(found))]
    rows.sort(key=_worth)
    frame: dict[str, Any] = {"number": pd.Series(range(1, len(rows[:top]) + 1), dtype="int64")}
    for name in VERDICT.names[1:]:
        values = [row[name] for row in rows[:top]]
        frame[name] = floats(values) if name.endswith(("_ns", "_pct")) else text(values)
    return VERDICT.typed(pd.DataFrame(frame))


def _worth(row: dict[str, Any]) -> tuple[bool, float]:
    saving = row["could_save_ns"]
    return row["kind"] != "hang", -saving if saving > 0 else 0.0  # what is not a number is not above 0


def _row(made: OverviewFrames, found: pd.Series, window: float) -> dict[str, Any]:
    sentence, impact, source = str(found["finding"]), found["impact_ns"], str(found["source"])
    unknown = float("nan")
    stake = unknown if pd.isna(impact) else float(impact)
    saving, basis = unknown, "it says how things are, not what they cost"
    if source == "hangs":
        basis = "the job does not go on"
    elif source == "stragglers":
        others = max(1, int(made.stragglers["waited_for_ns"].notna().sum()) - 1)
        saving, basis = stake / others, "what each of the other ranks waited for it, on average"
    elif source == "operators":
        saving, basis = stake, "what the slowest rank spends on it above the mean rank"
    elif source == "roles" and stake == stake:
        saving, basis = stake, "of each step what the slowest rank takes above the median rank"
    return {
        "finding": _head(sentence),
        "evidence": sentence,
        "could_save_ns": saving,
        "could_save_pct": unknown if source == "roles" or not window > 0 else 100.0 * saving / window,
        "basis": basis,
        "at_stake_ns": stake,
        "kind": _KINDS.get(source, source) if source != "roles" or stake == stake else "roles",
        "table": source,
        "frame": _FRAMES.get(source, f"session.{source}()"),
    }


def _head(sentence: str, limit: int = 110) -> str:
    """Return the beginning of a sentence, up to where it goes into details."""
    cut = [at for mark in (": ", "; ", ", which ") if (at := sentence.find(mark)) > 24]
    head = sentence[: min(cut)] if cut else sentence.rstrip(".")
    return head if len(head) <= limit else head[: head.rfind(" ", 0, limit)] + " …"
