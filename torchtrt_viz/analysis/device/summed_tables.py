"""The table of kernels where a profile holds sums over all executions, and no times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.device_sums import DeviceSums
from torchtrt_viz.analysis.core.device_work import CLASSES, device_label
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.masks import among, codes
from torchtrt_viz.analysis.core.tables import floats, integers, order, percent
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["summed_kernels"]

Ints = NDArray[np.int64]

_CLASS = {"kernel": "compute", "communication": "communication", "memcpy": "copy", "memset": "fill"}


def summed_kernels(
    trace: TraceData, sums: DeviceSums, by: Sequence[str], sort: str | None, top: int | None
) -> pd.DataFrame:
    """Return `kernels` of sums: median, least and most of several executions are not known."""
    rows = np.flatnonzero(sums.work)
    spans = trace.spans
    kinds = spans["kind"].astype(str).to_numpy()[rows]
    columns: dict[str, Any] = {
        "name": spans["name"].array[rows],
        "class": pd.Categorical([_CLASS[kind] for kind in kinds], categories=list(CLASSES)),
    }
    for name in by:
        columns[name] = _attribute(trace, sums, rows, name)
    groups = Groups.by(columns)
    total = groups.total(sums.own[rows])
    stated = sums.calls[rows]
    counted = groups.count(stated < 0) == 0
    calls = groups.total(np.maximum(stated, 1))
    once = counted & (calls == 1)
    mean = np.divide(total, calls, out=np.full(groups.size, np.nan), where=counted & (calls > 0))
    frame = groups.labels.assign(
        calls=calls,
        total_ns=total,
        total_pct=percent(total),
        mean_ns=mean,
        median_ns=np.where(once, total, np.nan),
        min_ns=integers(total, once),
        max_ns=integers(total, once),
        std_ns=floats(np.full(groups.size, np.nan)),
        launch_rows=np.zeros(groups.size, np.int64),
    )
    front = ["name", *by, "class"]
    frame = frame[front + [c for c in frame.columns if c not in front]]
    return order(frame, sort, top, ("name",))


def _attribute(trace: TraceData, sums: DeviceSums, rows: Ints, name: str) -> Any:
    spans = trace.spans
    if name == "device":
        device = filled(trace.tracks["device"])[spans["track"].to_numpy()[rows]]
        return np.array([device_label(int(each)) for each in device], dtype=object)
    if name == "stream":
        return trace.tracks["label"].to_numpy(dtype=object)[spans["track"].to_numpy()[rows]]
    if name == "operator":
        scope = sums.rows & among(spans["kind"], ("operator",))
        owner = nearest(spans["parent"].to_numpy(), scope)[rows]
        found = np.where(owner >= 0, codes(spans["name"])[np.maximum(owner, 0)], -1)
        return pd.Categorical.from_codes(found, categories=spans["name"].cat.categories)
    return np.full(len(rows), None, dtype=object)
