"""The tables that the dumps of a session give, worked out with one reading of each dump."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.columns.hangs import HANGS, POSITIONS
from torchtrt_viz.analysis.hangs.gathering import DUMP, Gathered, gathered
from torchtrt_viz.analysis.hangs.positions import positions_of
from torchtrt_viz.analysis.hangs.reduction import WORK
from torchtrt_viz.analysis.hangs.standing import stood
from torchtrt_viz.analysis.hangs.table import hangs_of
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.session_data import SessionData

__all__ = ["HangTables", "hang_tables", "only_dumps", "session_hangs", "session_positions", "tables_of"]

_KEPT = "hangs"


@dataclass(frozen=True)
class HangTables:
    """Where ranks wait or disagree, and the last call of each rank in each of its groups."""

    hangs: pd.DataFrame
    positions: pd.DataFrame


def tables_of(frames: Sequence[pd.DataFrame]) -> HangTables:
    """Return the tables of what `reduction.WORK` gave for each dump, under each other."""
    return _tables(gathered(frames))


def _tables(found: Gathered) -> HangTables:
    jobs = stood(found)
    return HangTables(hangs_of(found, jobs), positions_of(found, jobs))


def only_dumps(session: SessionData) -> bool:
    """Whether the session has dumps and nothing else to read."""
    what = session.ranks["what"]
    return bool(len(what)) and bool((what == DUMP).all())


def hang_tables(session: SessionData) -> HangTables:
    """Read the dumps of a session, once: the session keeps the tables."""
    made = session.computed.get(_KEPT)
    if made is None:
        made = _tables(Gathered())
        if (session.ranks["what"] == DUMP).any():
            try:
                made = tables_of(session.map_all(WORK, what=(DUMP,)))
            except TorchTrtVizError:  # none can be read: the session's ranks and warnings say so
                return made
        session.computed[_KEPT] = made
    return made


@returns(HANGS)
def session_hangs(session: SessionData) -> pd.DataFrame:
    """Collectives in which ranks wait or disagree, out of the dumps of their Flight Recorders.

    Ranks are compared by the numbers of their collectives, and no clocks are: each dump begins where the
    rank's ring buffer does, and only what several of them have is compared.

    Returns
    -------
    pandas.DataFrame
        One row per collective; none where no rank waits for another, and without dumps.
    """
    return hang_tables(session).hangs.copy()


@returns(POSITIONS)
def session_positions(session: SessionData) -> pd.DataFrame:
    """The last collective that each rank called in each of its groups.

    Returns
    -------
    pandas.DataFrame
        One row per process group and rank with a Flight Recorder's dump.
    """
    return hang_tables(session).positions.copy()
