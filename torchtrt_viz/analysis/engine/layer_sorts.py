"""Layers of engines by what they are: type and precision."""

from __future__ import annotations

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.engines import LAYER_TYPES
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.tables import floats, integers, order, text
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["layer_types"]


@returns(LAYER_TYPES)
def layer_types(
    trace: TraceData,
    *,
    engine: str | None = None,
    sort: str | None = "total_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Sum the layers of engines by type and precision.

    Parameters
    ----------
    engine
        Only this engine (a value of column ``engine`` of :func:`torchtrt_viz.analysis.layers`).
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`.

    Returns
    -------
    pandas.DataFrame
        One row per engine, type, precision and domain; none for engines of which only names are recorded.

    Examples
    --------
    >>> engines = tv.load(samples / "trex")
    >>> sorted(set(tv.analysis.layer_types(engines)["engine"]))[:1]
    ['region_000']
    """
    frame = layers(trace, engine=engine, sort=None)
    frame = frame[frame["type"].notna()]
    groups = Groups.by({name: frame[name] for name in ("engine", "type", "precision", "domain")})
    total = frame["total_ns"].fillna(0).to_numpy(dtype=np.int64)
    timed = groups.count(frame["total_ns"].notna().to_numpy())
    size = frame["weights_bytes"].fillna(0).to_numpy(dtype=np.int64)
    sized = groups.count(frame["weights_bytes"].notna().to_numpy()) > 0
    share = np.zeros(groups.size)
    np.add.at(share, groups.codes, frame["pct"].fillna(0).to_numpy(dtype=np.float64))
    labels = {name: text(groups.labels[name].to_numpy(dtype=object)) for name in groups.labels}
    result = pd.DataFrame(
        {
            **labels,
            "layers": groups.count(),
            "timed": timed,
            "total_ns": integers(groups.total(total), timed > 0),
            "pct": floats(share, timed > 0),
            "weights_bytes": integers(groups.total(size), sized),
        }
    )
    return order(result, sort, top, ("engine", "type", "precision"))
