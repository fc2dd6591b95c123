"""How launch delays are distributed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.device import LAUNCH_DELAY_HISTOGRAM
from torchtrt_viz.analysis.core.groups import exact_sums
from torchtrt_viz.analysis.core.tables import integers, text
from torchtrt_viz.analysis.device.launch import launch_delays
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["launch_delay_histogram"]


@returns(LAUNCH_DELAY_HISTOGRAM)
def launch_delay_histogram(trace: TraceData, *, per_decade: int = 8) -> pd.DataFrame:
    """Count launches by how long their work waited, from the start of the call to the start of the work.

    Parameters
    ----------
    per_decade
        Ranges of equal ratio in each factor of ten, 1 to 50.

    Returns
    -------
    pandas.DataFrame
        One row per class of work and range of delays that has launches.

    Raises
    ------
    OptionError
        For another ``per_decade``.

    Examples
    --------
    >>> int(tv.analysis.launch_delay_histogram(trace)["launches"].sum())
    240
    """
    if not isinstance(per_decade, int) or isinstance(per_decade, bool) or not 1 <= per_decade <= 50:
        raise OptionError("per_decade", per_decade, "1 to 50")
    delays = launch_delays(trace)
    waited = delays["queued_ns"].to_numpy(dtype=np.int64)
    kinds = delays["class"].astype(object).where(delays["class"].notna(), None).to_numpy(dtype=object)
    known = waited >= 1
    step = np.full(len(waited), -1, np.int64)
    # the edges are whole numbers, so that a row holds exactly the delays from from_ns up to before to_ns
    most = int(waited.max()) if known.any() else 1
    count = int(np.ceil(np.log10(max(most, 1) + 1) * per_decade)) + 1
    edges = np.unique(np.ceil(10.0 ** (np.arange(count + 1) / per_decade)).astype(np.int64))
    step[known] = np.searchsorted(edges, waited[known], side="right") - 1
    code, names = pd.factorize(kinds, use_na_sentinel=False)
    key = code * (len(edges) + 1) + step + 1
    unique, place = np.unique(key, return_inverse=True)
    at = unique % (len(edges) + 1) - 1
    chosen = np.maximum(at, 0)
    return pd.DataFrame(
        {
            "class": text([names[number] for number in unique // (len(edges) + 1)]),
            "from_ns": integers(edges[chosen], at >= 0),
            "to_ns": integers(edges[np.minimum(chosen + 1, len(edges) - 1)], at >= 0),
            "launches": np.bincount(place, minlength=len(unique)).astype(np.int64),
            "queued_ns": exact_sums(place, waited, len(unique)),
        }
    )
