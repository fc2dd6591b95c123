"""The warnings of loading as a table."""

from __future__ import annotations

import pandas as pd

from torchtrt_viz.analysis.columns.answers import REPAIRS
from torchtrt_viz.analysis.core.tables import integers, text
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["repairs"]


@returns(REPAIRS)
def repairs(trace: TraceData) -> pd.DataFrame:
    """List what a loader mended, left out or could not know.

    Returns
    -------
    pandas.DataFrame
        One row per warning of ``trace.meta["warnings"]``, in their order.

    Examples
    --------
    >>> len(tv.analysis.repairs(trace))
    0
    """
    found = list(trace.meta.get("warnings") or ())
    return pd.DataFrame(
        {
            "code": text([one.code for one in found]),
            "message": text([one.message for one in found]),
            "path": text([one.path for one in found]),
            "offset": integers(
                [-1 if one.offset is None else one.offset for one in found],
                [one.offset is not None for one in found],
            ),
            "count": pd.Series([one.count for one in found], dtype="int64"),
        }
    )
