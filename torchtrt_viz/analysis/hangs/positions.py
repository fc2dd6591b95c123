"""Which collective of which group each rank called last."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pandas as pd

from torchtrt_viz.analysis.columns.hangs import POSITIONS
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.hangs.gathering import Gathered
from torchtrt_viz.analysis.hangs.hang import call_at, site_at
from torchtrt_viz.analysis.hangs.reduction import STATES
from torchtrt_viz.analysis.hangs.standing import Stood

__all__ = ["positions_of"]


def positions_of(gathered: Gathered, jobs: Stood) -> pd.DataFrame:
    """Return the table of positions from the dumps side by side."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for job, groups in jobs:
        for group, calls, at in groups:
            rows = at.row.tolist()
            made = [call_at(gathered, calls, row) for row in rows]
            both = [call.both for call in made]
            sites = [site_at(gathered, calls, row) for row in rows]
            for name, value in (
                ("session", job.session),
                ("group", group.name),
                ("group_desc", group.desc),
                ("backend", group.backend),
            ):
                columns[name] += [value] * len(rows)
            columns["rank"] += at.rank.tolist()
            columns["first"] += at.first.tolist()
            columns["last"] += at.last.tolist()
            columns["last_completed"] += [last if last >= 0 else None for last in at.completed.tolist()]
            columns["behind"] += (at.last.max() - at.last).tolist()
            columns["operation"] += [call.operation for call in made]
            columns["sizes"] += [sizes for sizes, _ in both]
            columns["types"] += [types for _, types in both]
            columns["state"] += [
                STATES[state] if state >= 0 else None for state in calls.state[at.row].tolist()
            ]
            columns["retired"] += [
                None if retired < 0 else retired > 0 for retired in calls.retired[at.row].tolist()
            ]
            columns["older"] += at.older.tolist()
            columns["since_unix_ns"] += [ns if ns > 0 else None for ns in calls.created_ns[at.row].tolist()]
            columns["source"] += [source for source, _ in sites]
            columns["stack"] += [stack for _, stack in sites]
    frame: dict[str, Any] = {}
    for column in POSITIONS.columns:
        values = columns[column.name]
        frame[column.name] = text(values) if column.dtype == "text" else pd.array(values, dtype=column.dtype)  # type: ignore[call-overload]
    return POSITIONS.typed(pd.DataFrame(frame))
