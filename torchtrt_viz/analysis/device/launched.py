"""What launched each piece of device work: its call, its operator, how long before, behind how many."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import LAUNCHED_WORK
from torchtrt_viz.analysis.core.links import launches, operator_rows, operators_of
from torchtrt_viz.analysis.core.masks import codes, ints
from torchtrt_viz.analysis.core.tables import integers
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["launched_work"]

Ints = NDArray[np.int64]


@returns(LAUNCHED_WORK)
def launched_work(trace: TraceData) -> pd.DataFrame:
    """Say of each piece of device work what launched it, how long before, and behind how many others.

    Returns
    -------
    pandas.DataFrame
        One row per piece of device work, by its start. What is not known of it is missing.

    Examples
    --------
    >>> work = tv.analysis.launched_work(trace)
    >>> work.nlargest(1, "queued_ns")[["name", "operator"]].to_dict("records")
    [{'name': 'vectorized_elementwise_kernel<4, Add>', 'operator': 'aten::add'}]
    """
    found = launches(trace)
    work, host = found.work, found.host
    spans = trace.spans
    known = host >= 0
    called = ints(spans["start_ns"])[np.maximum(host, 0)]
    operator = operators_of(trace, found, operator_rows(trace))
    track = work.track[known].astype(np.int64)
    names, categories = codes(spans["name"]), spans["name"].cat.categories

    def named(rows: Ints) -> pd.Categorical:
        code = np.where(rows >= 0, names[np.maximum(rows, 0)], -1)
        return pd.Categorical.from_codes(code, categories=categories)

    return pd.DataFrame(
        {
            "row": work.row,
            "name": named(work.row),
            "host_row": integers(host, known),
            "launched_by": named(host),
            "operator_row": integers(operator, operator >= 0),
            "operator": named(operator),
            "queued_ns": integers(work.start - called, known),
            "ahead": integers(_ahead(track, called[known], work.start[known], known), known),
        }
    )


def _ahead(track: Ints, called: Ints, begin: Ints, known: NDArray[np.bool_]) -> Ints:
    """Count the pieces of each one's stream that were launched before it and had not begun at its launch."""
    ahead = np.zeros(len(track), np.int64)
    order = np.lexsort((begin, called, track))
    bounds = np.flatnonzero(np.diff(track[order], prepend=-1, append=-1))
    for first, last in itertools.pairwise(bounds):
        mine = order[first:last]
        calls = called[mine]
        before = np.searchsorted(calls, calls, side="left")  # pieces of one call do not wait for each other
        begun = np.searchsorted(np.sort(np.maximum(begin[mine], calls)), calls, side="left")
        ahead[mine] = np.maximum(before - begun, 0)
    out = np.zeros(len(known), np.int64)
    out[known] = ahead
    return out
