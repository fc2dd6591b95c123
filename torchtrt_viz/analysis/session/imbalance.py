"""How unevenly the ranks of a session work: per step, and per kind of collective."""

from __future__ import annotations

import pandas as pd

from torchtrt_viz.analysis.columns.sessions import COLLECTIVE_TOTALS, STEP_IMBALANCE
from torchtrt_viz.model.frame_docs import returns

__all__ = ["collective_totals", "step_imbalance"]

_STEP = ["session", "role", "cycle", "step"]
_COLLECTIVE = ["session", "role", "name", "domain"]


@returns(STEP_IMBALANCE)
def step_imbalance(steps: pd.DataFrame) -> pd.DataFrame:
    """Steps of equal number over the ranks of a role.

    Parameters
    ----------
    steps
        Table of ``Session.steps()``.

    Returns
    -------
    pandas.DataFrame
        One row per step that at least two ranks of a session, role and cycle have. Equal numbers are equal
        counts, not the same moment.
    """
    columns = [*_STEP, "ranks", "min_ns", "median_ns", "max_ns", "over_pct", "slowest_rank"]
    steps = steps.reset_index(drop=True)
    groups = steps.groupby(_STEP, dropna=False, sort=False)["dur_ns"]
    steps = steps[(groups.transform("size") > 1).to_numpy()]
    if steps.empty:
        return STEP_IMBALANCE.typed(pd.DataFrame(columns=columns))
    groups = steps.groupby(_STEP, dropna=False, sort=False)["dur_ns"]
    out = groups.agg(ranks="size", min_ns="min", median_ns="median", max_ns="max").reset_index()
    out["slowest_rank"] = steps.loc[groups.idxmax().to_numpy(), "rank"].array
    median = out["median_ns"].astype("Float64")
    out["over_pct"] = (100.0 * (out["max_ns"] / median - 1)).where(median > 0)
    return out[columns]


@returns(COLLECTIVE_TOTALS)
def collective_totals(collectives: pd.DataFrame) -> pd.DataFrame:
    """Collectives of one name together.

    Parameters
    ----------
    collectives
        Table of ``Session.collectives()``.

    Returns
    -------
    pandas.DataFrame
        One row per name of collectives.
    """
    columns = [
        *_COLLECTIVE,
        *("collectives", "groups", "wait_ns", "mean_wait_ns", "max_wait_ns", "last_rank", "last_pct"),
    ]
    if collectives.empty:
        return COLLECTIVE_TOTALS.typed(pd.DataFrame(columns=columns))
    groups = collectives.groupby(_COLLECTIVE, dropna=False, sort=False)
    out = groups.agg(
        collectives=("wait_ns", "size"),
        groups=("group", "nunique"),
        wait_ns=("wait_ns", "sum"),
        mean_wait_ns=("wait_ns", "mean"),
        max_wait_ns=("wait_ns", "max"),
    ).reset_index()
    by_rank = collectives.groupby([*_COLLECTIVE, "last_rank"], dropna=False, sort=False)["wait_ns"]
    ranks = by_rank.sum().reset_index()
    most = ranks.groupby(_COLLECTIVE, dropna=False, sort=False)["wait_ns"].idxmax().to_numpy()
    out["last_rank"] = ranks.loc[most, "last_rank"].array
    whole = out["wait_ns"].astype("Float64")
    out["last_pct"] = (100.0 * ranks.loc[most, "wait_ns"].to_numpy() / whole).where(whole > 0)
    return out.sort_values("wait_ns", ascending=False, kind="stable")[columns].reset_index(drop=True)
