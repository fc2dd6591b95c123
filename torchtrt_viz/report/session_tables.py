"""Tables of a session prepared for display: without columns that have the same value in every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.analysis.session.rank_overview import Overview
    from torchtrt_viz.model.session_data import SessionData

__all__ = [
    "operators_table",
    "plain",
    "ranks_table",
    "role_columns",
    "skew_table",
    "stragglers_table",
]

_KEYS = ("session", "rank", "role", "instance", "host", "cycle", "stage")
_ONE_IS_ENOUGH = ("session", "role", "instance", "host", "cycle", "stage")


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns that distinguish no rows: a single session, host or cycle, empty roles and stages."""
    same = [
        column
        for column in _ONE_IS_ENOUGH
        if column in frame and (frame[column].isna().all() or (len(frame) > 1 and _one(frame[column])))
    ]
    out = frame.drop(columns=same).reset_index(drop=True)
    for column in out.columns:
        if out[column].dtype == bool:
            out[column] = out[column].map({True: "yes", False: "no"}).astype(object)
    return out


def _one(column: pd.Series) -> bool:
    return int(column.nunique(dropna=False)) == 1


def ranks_table(session: SessionData, made: Overview) -> pd.DataFrame:
    """Return one row a recording: whose it is, its state and totals, and ``recording`` (its path).

    A recording that could not be read has no totals.
    """
    ranks = made.ranks
    totals = made.totals.drop(columns=["synthetic"])
    left = ranks[[*_KEYS, "state"]].copy()
    cut = zip(ranks["cut_at_start"], ranks["cut_at_stop"], strict=True)
    left["cut requests"] = [len(start) + len(stop) for start, stop in cut]
    left["recording"] = ranks["path"]
    right = totals.assign(**{key: totals[key].astype(left[key].dtype) for key in _KEYS})
    out = left.merge(right.drop_duplicates(list(_KEYS)), on=list(_KEYS), how="left")
    if not out["cut requests"].any():
        out = out.drop(columns=["cut requests"])
    return plain(out)


def role_columns(by_role: pd.DataFrame) -> pd.DataFrame:
    """Return the operators by role with columns whose names say host."""
    words = {"_self_pct": " host self_pct", "_call_ns": " host self per call_ns", "_calls": " calls"}
    names = {}
    for column in by_role.columns:
        for suffix, said in words.items():
            if str(column).endswith(suffix):
                names[column] = str(column)[: -len(suffix)] + said
    return by_role.rename(columns=names)


def operators_table(operators: pd.DataFrame) -> pd.DataFrame:
    """Return the operators, with measures of uneven work beside their time."""
    first = [c for c in operators.columns if c not in ("rank_mean_ns", "rank_min_ns", "total_ns")]
    return operators[[*first, "rank_mean_ns", "rank_min_ns", "total_ns"]]


def stragglers_table(stragglers: pd.DataFrame) -> pd.DataFrame:
    """Return the ranks with known waits or steps; none when there is nothing to compare."""
    known = stragglers["waited_for_ns"].notna() | stragglers["steps"].notna()
    return stragglers[known]


def skew_table(skew: pd.DataFrame) -> pd.DataFrame:
    """Return the collectives by longest wait, groups by name where the names are distinct."""
    out = skew.sort_values("max_wait_ns", ascending=False, kind="stable")
    named = out.drop_duplicates(["group", "group_ranks"])["group"]
    return out.drop(columns=["group_ranks"]) if named.notna().all() and named.is_unique else out
