"""Everything that a session's report shows, with one reading of each rank's trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchtrt_viz.analysis.device.communication import collectives as device_collectives
from torchtrt_viz.analysis.device.operator_tables import operators as device_operators
from torchtrt_viz.analysis.hangs.reduction import WORK
from torchtrt_viz.analysis.hangs.session_tables import hang_tables, only_dumps, tables_of
from torchtrt_viz.analysis.session.busy_strips import trace_strips
from torchtrt_viz.analysis.session.findings import session_findings
from torchtrt_viz.analysis.session.overview_frames import OverviewFrames
from torchtrt_viz.analysis.session.rank_operators import operators_of
from torchtrt_viz.analysis.session.rank_steps import (
    collectives_of,
    steps_of,
    stragglers_of,
    trace_collectives,
    trace_steps,
)
from torchtrt_viz.analysis.session.request_flow import requests_of, trace_request_sums
from torchtrt_viz.analysis.session.roles import operators_by_role, roles_of, trace_totals
from torchtrt_viz.analysis.session.skew import skew_of

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.session_data import SessionData

__all__ = ["RANK_WORK", "Overview", "overview"]


RANK_WORK: list[tuple[Callable[..., pd.DataFrame], dict[str, Any]]] = [
    (trace_totals, {}),
    (device_operators, {"sort": None}),
    (trace_steps, {}),
    (trace_collectives, {}),
    (trace_request_sums, {}),
    (device_collectives, {}),
    (trace_strips, {}),
]
"""What is computed of each rank's trace, for all tables over ranks."""


class Overview(OverviewFrames):
    """Tables over the ranks of a session, and what stands out in them."""

    def explain(self, *, top: int = 6) -> pd.DataFrame:
        """What stands out: see :func:`torchtrt_viz.analysis.session.findings.session_findings`."""
        return session_findings(self, top=top)


def overview(session: SessionData, progress: Callable[[int, int], None] | None = None) -> Overview:
    """Compute all tables over ranks; every trace is read once.

    The session keeps them (``session.computed["overview"]``), so that reports need not read the ranks again.

    Parameters
    ----------
    progress
        Called with (ranks done, ranks in all) after each rank.

    Raises
    ------
    TorchTrtVizError
        When no rank can be read.
    """
    alone = only_dumps(session)  # then they are what is read here, and need not be read again
    found = session.map_all([*RANK_WORK, *(WORK if alone else ())], progress=progress)
    totals, operators, steps, collectives, requests, devices, strips = found[: len(RANK_WORK)]
    hanging = tables_of(found[len(RANK_WORK) :]) if alone else hang_tables(session)
    ranks = session.ranks
    steps = steps_of(steps)
    collectives = collectives_of(collectives)
    requests = requests_of(requests, ranks)
    operators = operators_of(operators)
    made = Overview(
        ranks=ranks,
        totals=totals,
        roles=roles_of(totals, steps, requests),
        by_role=operators_by_role(operators),
        operators=operators,
        steps=steps,
        collectives=collectives,
        skew=skew_of(devices),
        stragglers=stragglers_of(ranks, steps, collectives),
        requests=requests,
        strips=strips,
        hangs=hanging.hangs,
        positions=hanging.positions,
    )
    session.computed["overview"] = made
    return made.copy()
