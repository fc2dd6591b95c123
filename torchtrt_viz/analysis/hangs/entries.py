"""The entries of one dump as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from torchtrt_viz.analysis.columns.hangs import RECORDED
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["recorded_collectives"]


@returns(RECORDED)
def recorded_collectives(trace: TraceData) -> pd.DataFrame:
    """What a Flight Recorder's dump says of each collective, send and receive.

    Returns
    -------
    pandas.DataFrame
        One row per entry, the latest first; none for a trace that is no such dump.

    Examples
    --------
    >>> len(tv.analysis.recorded_collectives(trace))
    0
    """
    found = trace.meta.get("flight_recorder")
    if found is None:
        return RECORDED.typed(pd.DataFrame({name: [] for name in RECORDED.names}))
    entries: pd.DataFrame = found["entries"].iloc[::-1].reset_index(drop=True)
    columns = {
        column.name: text(entries[column.name].astype(object).to_numpy())
        if column.dtype == "text"
        else entries[column.name]
        for column in RECORDED.columns
    }
    return RECORDED.typed(pd.DataFrame(columns))
