"""What stands out in a session, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.analysis.columns.sessions import EXPLAIN
from torchtrt_viz.analysis.core.humanize import duration
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.analysis.session.overview_frames import OverviewFrames

__all__ = ["session_findings"]

_UNEVEN = 1.25
_BEHIND_PCT = 5.0
_EXPOSED_PCT = 10.0
_WORTH_PCT = 3.0
_MOST_NAMED = 5
_MOST_HANGS = 4

Finding = tuple[str, float | None, str, Any]
"""Sentence, time at stake, table, session (None: of no single one)."""


@returns(EXPLAIN)
def session_findings(made: OverviewFrames, *, top: int = 6) -> pd.DataFrame:
    """Say in sentences what stands out over the ranks.

    Parameters
    ----------
    made
        The session's tables.
    top
        Largest number of findings.

    Returns
    -------
    pandas.DataFrame
        One row per finding; who hangs comes first, then who keeps others waiting.
    """
    waited = list(_waited_for(made.stragglers))
    found = [
        *_hanging(made.hangs),
        *waited,
        # who meets in collectives takes equally long steps: there the waiting tells, not the steps
        *([] if waited else _slow_steps(made.roles)),
        *_uneven(made.operators),
        *_exposed(made.roles),
        *_roles(made.roles),
        *_requests(made.requests),
    ][:top]
    if made.totals["session"].nunique(dropna=False) > 1:
        found = [
            (text if of is None or pd.isna(of) else f"Session {of}: {text}", *rest, of)
            for text, *rest, of in found
        ]
    return pd.DataFrame(
        {
            "finding": pd.Series([text for text, *_ in found], dtype=object),
            "impact_ns": pd.Series([impact for _, impact, *_ in found], dtype="Float64"),
            "source": pd.Series([source for _, _, source, _ in found], dtype=object),
        }
    )


def _who(row: Any) -> str:
    """Name a rank with what tells it apart."""
    more = ", ".join(str(part) for part in (row["role"], row["host"]) if not pd.isna(part))
    number = "?" if pd.isna(row["rank"]) else int(row["rank"])
    return f"rank {number} ({more})" if more else f"rank {number}"


def _role(role: Any) -> str:
    return "" if pd.isna(role) else f"{role} "


def _pct(value: float) -> str:
    return f"{value:.3g} %"


def _hanging(hangs: pd.DataFrame) -> Iterator[Finding]:
    """Where ranks wait or disagree according to the dumps of their Flight Recorders, causes first."""
    for _, row in hangs.head(_MOST_HANGS).iterrows():
        sure = row["certainty"] == "certain" or pd.isna(row["why"])
        text = row["finding"] if sure else f"{row['finding']} {row['certainty'].capitalize()}: {row['why']}."
        yield text, None, "hangs", row["session"]
    more = len(hangs) - _MOST_HANGS
    if more > 0:
        yield f"Ranks wait or disagree in {more:,} more collectives.", None, "hangs", None


def _waited_for(stragglers: pd.DataFrame) -> Iterator[Finding]:
    """Ranks for which the others wait at least three times as long as for the mean rank of their role."""
    known = stragglers[stragglers["waited_for_ns"].notna()]
    for _, part in known.groupby(["session", "role"], dropna=False):
        waits = part["waited_for_ns"].astype("float64")
        total, fair = float(waits.sum()), float(waits.mean())
        late = part[(waits >= max(3 * fair, 1)) if len(part) > 3 else (waits >= 0.6 * total) & (waits > 0)]
        if total <= 0 or not len(late):
            continue
        first = late.iloc[0]
        took = float(first["waited_for_ns"])
        text = (
            f"The other ranks waited {duration(took)} in collectives for {_who(first)}, which entered "
            f"{int(first['last_in']):,} of them last: {_pct(100 * took / total)} of all such waiting of the "
            f"{len(part)} {_role(first['role'])}ranks."
        )
        if len(late) > 1:
            others = ", ".join(_who(row) for _, row in late.iloc[1:_MOST_NAMED].iterrows())
            more = f" and {len(late) - _MOST_NAMED} more" if len(late) > _MOST_NAMED else ""
            text += f" The same holds for {others}{more}."
        yield text, took, "stragglers", first["session"]


def _slow_steps(roles: pd.DataFrame) -> Iterator[Finding]:
    for _, row in roles.iterrows():
        if pd.isna(row["slowest_pct"]) or row["slowest_pct"] < _BEHIND_PCT or pd.isna(row["slowest_rank"]):
            continue
        behind = float(row["step_median_ns"]) * float(row["slowest_pct"]) / 100
        yield (
            f"The median step of {_role(row['role'])}rank {int(row['slowest_rank'])} takes "
            f"{_pct(float(row['slowest_pct']))} longer than that of the median {_role(row['role'])}rank.",
            behind,
            "roles",
            row["session"],
        )


def _uneven(operators: pd.DataFrame) -> Iterator[Finding]:
    known = operators[(operators["ranks"] > 1) & operators["imbalance"].notna()]
    known = known[(known["imbalance"] >= _UNEVEN) & (known["self_pct"] >= _WORTH_PCT)]
    if not len(known):
        return
    over = (known["rank_max_ns"] - known["rank_mean_ns"]).astype("float64")
    row = known.iloc[int(over.to_numpy().argmax())]
    role = _role(row["role"]) if "role" in known else ""
    where = "?" if pd.isna(row["max_rank"]) else int(row["max_rank"])
    yield (
        f"{row['name']} lies unevenly over the {role}ranks: rank {where} spends "
        f"{duration(float(row['rank_max_ns']))} of its own host time on it, the mean rank "
        f"{duration(float(row['rank_mean_ns']))} ({float(row['imbalance']):.2f} times).",
        float(over.max()),
        "operators",
        row["session"] if "session" in known else None,
    )


def _exposed(roles: pd.DataFrame) -> Iterator[Finding]:
    for _, row in roles.iterrows():
        if not pd.isna(row["gpu_exposed_pct"]) and row["gpu_exposed_pct"] >= _EXPOSED_PCT:
            yield (
                f"The GPUs of the {_role(row['role'])}ranks do nothing but communicate for "
                f"{_pct(float(row['gpu_exposed_pct']))} of their span.",
                None,
                "roles",
                row["session"],
            )


def _roles(roles: pd.DataFrame) -> Iterator[Finding]:
    known = roles[roles["role"].notna() & roles["step_median_ns"].notna()]
    if len(known) < 2 or known["session"].nunique(dropna=False) > 1:
        return
    parts = [
        f"{row['role']} {duration(float(row['step_median_ns']))} (p90 {duration(float(row['step_p90_ns']))}, "
        f"{float(row['steps_per_rank']):.3g} steps a rank)"
        for _, row in known.iterrows()
    ]
    yield f"Median step: {'; '.join(parts)}.", None, "roles", None


def _requests(requests: pd.DataFrame) -> Iterator[Finding]:
    if not len(requests):
        return
    joined = int(requests["joined"].sum())
    text = f"{joined:,} of {len(requests):,} requests are in the recordings of both prefill and decode ranks"
    cut = int(requests["cut"].sum())
    if cut:
        text += f"; {cut:,} were cut by a boundary of the recording"
    for column, words in (
        ("handoff_ns", "median from prefill's end to the first decode step {}"),
        ("decode_queue_ns", "median wait of a received cache for its first decode step {}"),
    ):
        known = requests[column].dropna()
        if len(known):
            text += "; " + words.format(duration(float(known.astype("float64").median())))
    if requests["joined"].any() and requests.loc[requests["joined"], "handoff_ns"].isna().all():
        text += "; the hand-over between them is not known: their clocks are of different hosts or unknown"
    yield f"{text}.", None, "requests", None
