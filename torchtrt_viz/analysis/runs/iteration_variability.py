"""How much durations vary from iteration to iteration."""

from __future__ import annotations

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.core.steps import iterations
from torchtrt_viz.analysis.core.tables import floats, order, text
from torchtrt_viz.analysis.runs.sampling import samples
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["variability"]


def variability(
    trace: TraceData,
    *,
    level: str = "operator",
    skip_warmup: bool = True,
    sort: str | None = "mean_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Scatter of durations over iterations (over calls, where the capture has no iterations).

    Parameters
    ----------
    level
        A level of :func:`torchtrt_viz.analysis.compare`; operators and Python functions count with self time.
    skip_warmup
        Leave warm-up iterations out.
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``run_id``
            What ran, and the instance that it belongs to; missing: none.
        ``domain``
            host or gpu.
        ``basis``
            iteration: the numbers are of the time per iteration; call: of one call; mean: only an average
            was recorded, so that everything but ``mean_ns`` is NA.
        ``samples``
            Iterations (or calls) that the numbers come from.
        ``mean_ns``, ``median_ns``, ``p90_ns``, ``p99_ns``, ``min_ns``, ``max_ns``
            Of the samples, ns. Percentiles are interpolated; of fewer than ten (p90) or a hundred (p99)
            samples they are little more than the maximum.
        ``std_ns``
            Sample standard deviation, ns; NA for one sample.
        ``cv_pct``
            Coefficient of variation: ``std_ns`` in percent of ``mean_ns``; NA for one sample or a mean of 0.
        ``warmup``
            Warm-up iterations that were found in the capture (left out if ``skip_warmup``).
    """
    found = samples(trace, level, skip_warmup=skip_warmup)
    listed = iterations(trace)
    warm = int(listed["warmup"].sum())
    rows = []
    for values in found.values:
        many = len(values) > 1 and found.basis != "mean"
        mean = float(values.mean()) if len(values) else np.nan
        std = float(values.std(ddof=1)) if many else np.nan
        spread = (
            [float(np.quantile(values, q)) for q in (0.5, 0.9, 0.99)]
            + [float(values.min()), float(values.max())]
            if found.basis != "mean"
            else [np.nan] * 5
        )
        rows.append([len(values), mean, *spread, std, 100.0 * std / mean if mean > 0 else np.nan])
    table = np.array(rows, dtype=np.float64).reshape(-1, 9)
    frame = pd.DataFrame(
        {
            "name": found.keys["name"].astype(object).to_numpy(),
            "run_id": text(found.keys["run_id"].to_list()),
            "domain": text(found.domain),
            "basis": found.basis,
            "samples": table[:, 0].astype(np.int64),
            "mean_ns": floats(table[:, 1]),
            "median_ns": floats(table[:, 2]),
            "p90_ns": floats(table[:, 3]),
            "p99_ns": floats(table[:, 4]),
            "min_ns": floats(table[:, 5]),
            "max_ns": floats(table[:, 6]),
            "std_ns": floats(table[:, 7]),
            "cv_pct": floats(table[:, 8]),
            "warmup": warm,
        }
    )
    return order(frame, sort, top, ("name",))
