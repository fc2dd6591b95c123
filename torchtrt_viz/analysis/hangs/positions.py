"""Which collective of which group each rank called last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.hangs import POSITIONS
from torchtrt_viz.analysis.core.tables import integers, text
from torchtrt_viz.analysis.hangs.gathering import Collectives, Gathered, Group, Job
from torchtrt_viz.analysis.hangs.hang import call_at, site_at
from torchtrt_viz.analysis.hangs.reduction import STATES
from torchtrt_viz.analysis.hangs.standing import standing

__all__ = ["positions_of"]


def positions_of(gathered: Gathered) -> pd.DataFrame:
    """Return the table of positions from the dumps side by side."""
    parts = [
        _positions(gathered, job, group, calls) for job in gathered.jobs for group, calls in job.collectives()
    ]
    if not parts:
        return POSITIONS.typed(pd.DataFrame({name: [] for name in POSITIONS.names}))
    return POSITIONS.typed(pd.concat(parts, ignore_index=True))


def _positions(gathered: Gathered, job: Job, group: Group, calls: Collectives) -> pd.DataFrame:
    at = standing(calls, gathered.calls)
    rows = at.row.tolist()
    made = [call_at(gathered, calls, row) for row in rows]
    sites = [site_at(gathered, calls, row) for row in rows]
    created = calls.created_ns[at.row]
    columns: dict[str, Any] = {
        "session": text([job.session] * len(rows)),
        "group": text([group.name] * len(rows)),
        "group_desc": text([group.desc] * len(rows)),
        "backend": text([group.backend] * len(rows)),
        "rank": integers(at.rank),
        "first": integers(at.first),
        "last": integers(at.last),
        "last_completed": integers(at.completed, at.completed >= 0),
        "behind": integers(at.last.max() - at.last),
        "operation": text([call.operation for call in made]),
        "sizes": text([call.both[0] for call in made]),
        "types": text([call.both[1] for call in made]),
        "state": text([STATES[state] if state >= 0 else None for state in calls.state[at.row].tolist()]),
        "retired": pd.array(
            [None if value < 0 else bool(value) for value in calls.retired[at.row].tolist()], dtype="boolean"
        ),
        "older": pd.array(at.older, dtype="boolean"),
        "since_unix_ns": integers(created, np.asarray(created > 0)),
        "source": text([source for source, _ in sites]),
        "stack": text([stack for _, stack in sites]),
    }
    return pd.DataFrame(columns)
