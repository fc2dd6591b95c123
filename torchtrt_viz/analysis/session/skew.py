"""Collectives over ranks: how long they transferred, and how long the others waited for the last rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.sessions import SKEW
from torchtrt_viz.analysis.core.tables import floats, integers, text
from torchtrt_viz.analysis.device.communication import bus_factor, collectives
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.model.session_data import SessionData

__all__ = ["collective_skew", "skew_of"]

# every rank's kernel of these runs until all have arrived: the shortest is the transfer itself
_TOGETHER = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
_KEYS = ["session", "cycle", "group_ranks", "group", "sequence"]


@returns(SKEW)
def collective_skew(session: SessionData) -> pd.DataFrame:
    """Collectives on devices, aligned over the ranks of a session.

    No clocks are compared. All ranks of a collective end together, and each rank's kernel begins when that
    rank arrives: the rank with the shortest kernel came last, its duration is the transfer, and what the
    others took longer they spent waiting for it.

    Parameters
    ----------
    session
        The ranks; with ``engine="dask"`` each is reduced where its task runs.

    Returns
    -------
    pandas.DataFrame
        One row per collective on devices that at least two ranks recorded with its group.

    Examples
    --------
    >>> tv.analysis.collective_skew(session)[["collective", "ranks", "last_rank"]].head(1).to_dict("records")
    [{'collective': 'all_reduce', 'ranks': 4, 'last_rank': 3}]
    """
    return skew_of(session.map(collectives))


def skew_of(table: pd.DataFrame) -> pd.DataFrame:
    """Align the collectives of several ranks.

    Parameters
    ----------
    table
        Tables of :func:`torchtrt_viz.analysis.collectives` under each other, with a column ``rank``.

    Returns
    -------
    pandas.DataFrame
        The columns of :func:`collective_skew`.

        Broadcasts, sends and receives are left out: their ranks do not wait for each other.
    """
    known = table[table["collective"].isin(_TOGETHER) & table["group_ranks"].notna()]
    keys = [key for key in _KEYS if key in known.columns]
    frame = known[[*keys, "rank", "collective", "group_size", "message_bytes", "dur_ns"]].copy()
    # of several records of one rank (it was loaded twice) the first counts
    frame = frame.drop_duplicates([*keys, "rank"])
    groups = frame.groupby(keys, dropna=False, sort=True)
    frame["transfer"] = groups["dur_ns"].transform("min")
    frame["wait"] = frame["dur_ns"] - frame["transfer"]
    count = groups["rank"].transform("size")
    agree = groups["collective"].transform("nunique") == 1
    frame = frame[(count > 1) & agree]
    groups = frame.groupby(keys, dropna=False, sort=True)
    if not len(frame):
        return SKEW.typed(pd.DataFrame(columns=SKEW.names))
    first = groups.first()
    last = frame.loc[groups["dur_ns"].idxmin(), "rank"].to_numpy()
    longest = frame.loc[groups["dur_ns"].idxmax(), "rank"].to_numpy()
    ranks = groups.size().to_numpy()
    transfer = first["transfer"].to_numpy(dtype=np.float64)
    message = first["message_bytes"].to_numpy(dtype=np.float64, na_value=np.nan)
    size = first["group_size"].to_numpy(dtype=np.float64, na_value=np.nan)
    algorithm = message / np.where(transfer > 0, transfer, np.nan)
    factor = [
        np.nan if np.isnan(n) else bus_factor(str(kind), int(n)) or np.nan
        for kind, n in zip(first["collective"], size, strict=True)
    ]
    index = first.index.to_frame(index=False)
    frame = pd.DataFrame(
        {
            "group": text(index["group"].to_list()),
            "group_ranks": text(index["group_ranks"].to_list()),
            "sequence": index["sequence"].to_numpy(dtype=np.int64),
            "collective": text(first["collective"].to_list()),
            "ranks": ranks,
            "missing_ranks": integers(np.nan_to_num(size) - ranks, ~np.isnan(size)),
            "message_bytes": integers(np.nan_to_num(message), ~np.isnan(message)),
            "transfer_ns": first["transfer"].to_numpy(dtype=np.int64),
            "last_rank": last,
            "mean_wait_ns": groups["wait"].mean().to_numpy(),
            "max_wait_ns": groups["wait"].max().to_numpy(dtype=np.int64),
            "first_rank": longest,
            "algorithm_gbps": floats(algorithm),
            "bus_gbps": floats(algorithm * np.array(factor, dtype=np.float64)),
        }
    )
    return SKEW.typed(frame)
