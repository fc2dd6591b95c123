"""The tables over the ranks of a session, held together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OverviewFrames"]


@dataclass(frozen=True)
class OverviewFrames:
    """Tables over the ranks of a session.

    Attributes
    ----------
    ranks
        As :attr:`torchtrt_viz.Session.ranks`, after the traces were read.
    totals
        One row a recording: the rank's columns, then those of
        :func:`torchtrt_viz.analysis.session.roles.trace_totals`.
    roles, by_role
        Roles side by side, and their operators: see :mod:`torchtrt_viz.analysis.session.roles`.
    operators, steps, collectives, stragglers, requests
        As the session's methods of these names return them.
    strips
        How busy each rank was over its recording: `torchtrt_viz.analysis.session.busy_strips.trace_strips`.
    skew
        Collectives on devices over the ranks of their groups: `torchtrt_viz.analysis.session.skew.skew_of`.
    hangs, positions
        Where ranks wait or disagree, and their last collectives, as the session's methods return them: out of
        the dumps of Flight Recorders.
    """

    ranks: pd.DataFrame
    totals: pd.DataFrame
    roles: pd.DataFrame
    by_role: pd.DataFrame
    operators: pd.DataFrame
    steps: pd.DataFrame
    collectives: pd.DataFrame
    skew: pd.DataFrame
    stragglers: pd.DataFrame
    requests: pd.DataFrame
    strips: pd.DataFrame
    hangs: pd.DataFrame
    positions: pd.DataFrame

    def copy(self) -> Self:
        """Return the same tables, to be changed at will."""
        return type(self)(**{field.name: getattr(self, field.name).copy() for field in fields(self)})
