"""Operators over the ranks of a session: sums, and how unevenly the work lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from torchtrt_viz.analysis.columns.sessions import OPERATORS_OVER_RANKS
from torchtrt_viz.analysis.device.operator_tables import operators
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.model.session_data import SessionData

__all__ = ["operators_of", "session_operators"]

_RANK = ["session", "rank", "role", "instance", "host"]


@returns(OPERATORS_OVER_RANKS)
def session_operators(
    session: SessionData,
    *,
    per_rank: bool = False,
    by: str | Sequence[str] = (),
    kinds: Iterable[str] = ("operator",),
    sort: str | None = "self_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Host operators over all ranks.

    Parameters
    ----------
    per_rank
        Return every rank's own table (``trace.operators(...)`` after the columns that name the rank)
        instead of the sums.
    by, kinds
        What else tells rows apart, and kinds of host spans to count, as in
        :func:`torchtrt_viz.analysis.operators`.
    sort, top
        Column to sort by (largest first), and at most so many rows.

    Returns
    -------
    pandas.DataFrame
        One row per operator on the host (and role): sums over ranks, and how unevenly the work lies.
    """
    by = [by] if isinstance(by, str) else list(by)
    frame = session.map(operators, by=tuple(by), kinds=tuple(kinds), sort=None)
    return frame if per_rank else operators_of(frame, by=by, sort=sort, top=top)


def operators_of(
    frame: pd.DataFrame, *, by: Sequence[str] = (), sort: str | None = "self_ns", top: int | None = None
) -> pd.DataFrame:
    """Host operators over all ranks, from the ranks' tables under each other: see `session_operators`."""
    skipped = frame.attrs.get("skipped", [])
    split = [c for c in ("session", "role") if frame[c].nunique(dropna=False) > 1]
    keys = [*split, "name", *by]
    frame = frame.assign(name=frame["name"].astype(object))
    ranks = (
        frame.groupby([*dict.fromkeys([*_RANK, *keys])], dropna=False, observed=True, sort=False)[
            ["calls", "total_ns", "self_ns"]
        ]
        .sum()
        .reset_index()
    )
    groups = ranks.groupby(keys, dropna=False, observed=True, sort=False)
    out = groups.agg(
        ranks=("self_ns", "size"),
        calls=("calls", "sum"),
        total_ns=("total_ns", "sum"),
        self_ns=("self_ns", "sum"),
        rank_mean_ns=("self_ns", "mean"),
        rank_min_ns=("self_ns", "min"),
        rank_max_ns=("self_ns", "max"),
    ).reset_index()
    largest = ranks.loc[groups["self_ns"].idxmax().to_numpy(), "rank"].array
    out["max_rank"] = largest
    mean = out["rank_mean_ns"].astype("Float64")
    out["imbalance"] = (out["rank_max_ns"].astype("Float64") / mean).where(mean > 0)
    whole = out.groupby(split, dropna=False)["self_ns"].transform("sum") if split else out["self_ns"].sum()
    share = 100.0 * out["self_ns"].astype("Float64") / whole
    out.insert(list(out.columns).index("rank_mean_ns"), "self_pct", share.where(out["self_ns"] > 0, 0.0))
    if sort is not None:
        if sort not in out:
            raise OptionError("sort", sort, f"one of {', '.join(out.columns)}")
        out = out.sort_values(sort, ascending=sort in ("name", *by, *split), kind="stable")
    out = out.head(top).reset_index(drop=True) if top is not None else out.reset_index(drop=True)
    out.attrs = {"skipped": skipped}
    return out
