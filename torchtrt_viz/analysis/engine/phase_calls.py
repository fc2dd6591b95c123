"""The phases of every single call of a delegate."""

from __future__ import annotations

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.engines import PHASES_BY_CALL
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.masks import ints, strings
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED, delegate_calls, phase_mask
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["phases_by_call"]


@returns(PHASES_BY_CALL)
def phases_by_call(trace: TraceData) -> pd.DataFrame:
    """Host time inside each call of a delegate, by phase; with the rest, the rows of a call sum to the call.

    Returns
    -------
    pandas.DataFrame
        One row per call and phase of it, and one for what no phase covers, by delegate and time.

    Examples
    --------
    >>> tv.analysis.phases_by_call(trace)["call"].unique().tolist()
    [0, 1, 2, 3]
    """
    spans = trace.spans
    calls = delegate_calls(trace)
    dur, start = spans["dur_ns"].to_numpy(), ints(spans["start_ns"])
    call_rows = np.flatnonzero(calls.call)
    call_rows = call_rows[np.argsort(start[call_rows], kind="stable")]
    owner = text(calls.instance[call_rows])
    number = pd.Series(owner, dtype=object).groupby(owner, dropna=False).cumcount().to_numpy(dtype=np.int64)
    place = np.full(len(spans), -1, np.int64)
    place[call_rows] = np.arange(len(call_rows))

    rows = np.flatnonzero(phase_mask(trace) & (calls.inside >= 0))
    groups = Groups.by({"call": place[calls.inside[rows]], "phase": spans["name"].array[rows]})
    at = groups.labels["call"].to_numpy(dtype=np.int64)
    covered = groups.total(dur[rows])
    first = rows[groups.first_row()] if groups.size else np.zeros(0, np.int64)
    rest = dur[call_rows].copy()
    np.subtract.at(rest, at, covered)
    every = np.arange(len(call_rows))
    at = np.concatenate((at, every))
    frame = pd.DataFrame(
        {
            "delegate": owner[at],
            "call": number[at],
            "call_row": call_rows[at],
            "phase": [*strings(spans["name"])[first], *([UNATTRIBUTED] * len(every))],
            "dur_ns": np.concatenate((covered, rest)),
            "call_dur_ns": dur[call_rows][at],
        }
    )
    order = np.lexsort((np.concatenate((start[first], np.full(len(every), np.iinfo(np.int64).max))), at))
    return PHASES_BY_CALL.typed(frame.iloc[order].sort_values("delegate", kind="stable", ignore_index=True))
