"""Several runs in a row: where a thing became slower or faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.statistics import holm, student_tail, winsorised_means
from torchtrt_viz.analysis.core.tables import floats, integers, text
from torchtrt_viz.analysis.runs.comparison import VERDICTS
from torchtrt_viz.analysis.runs.sampling import PROGRAM_LEVELS, Samples, samples
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["series", "series_values"]

Floats = NDArray[np.float64]


def series_values(
    runs: Sequence[TraceData],
    *,
    labels: Sequence[str] | None = None,
    levels: Sequence[str] = PROGRAM_LEVELS,
    skip_warmup: bool = True,
) -> pd.DataFrame:
    """Time of everything in each of several runs.

    Parameters
    ----------
    runs
        The runs, in order (of commits, builds, days).
    labels
        What to call them; by default their file, or their number.
    levels, skip_warmup
        As in :func:`torchtrt_viz.analysis.compare`, by default those that the program consists of.

    Returns
    -------
    pandas.DataFrame
        ``level``, ``name``, ``run_id``, ``domain``
            What ran (as in :func:`torchtrt_viz.analysis.compare`).
        ``run``, ``label``
            Number of the run, from 0, and its label.
        ``ns``
            Mean time per iteration (or call), the extreme tenths drawn in, ns.
        ``samples``
            Iterations (or calls) behind it.
    """
    names = _labels(runs, labels)
    parts = []
    for level in levels:
        for number, trace in enumerate(runs):
            found = samples(trace, level, skip_warmup=skip_warmup)
            parts.append(_values(found, number, names[number]))
    return pd.concat(parts, ignore_index=True)


def _labels(runs: Sequence[TraceData], labels: Sequence[str] | None) -> list[str]:
    if labels is None:
        return [str((trace.meta["sources"] or [number])[0]) for number, trace in enumerate(runs)]
    if len(labels) != len(runs):
        raise OptionError("labels", list(labels), f"one for each of the {len(runs)} runs")
    return list(labels)


def _values(found: Samples, number: int, label: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "level": text([found.level] * len(found.values)),
            "name": text(found.keys["name"].astype(object).to_list()),
            "run_id": text(found.keys["run_id"].astype(object).to_list()),
            "domain": text(found.domain),
            "run": np.full(len(found.values), number),
            "label": text([label] * len(found.values)),
            "ns": winsorised_means(found.values),
            "samples": np.array([len(values) for values in found.values], dtype=np.int64),
        }
    )


def series(
    runs: Sequence[TraceData],
    *,
    labels: Sequence[str] | None = None,
    levels: Sequence[str] = PROGRAM_LEVELS,
    alpha: float = 0.01,
    min_change_pct: float = 1.0,
    skip_warmup: bool = True,
) -> pd.DataFrame:
    """Find in several runs where something became slower or faster for good.

    For each thing the series of runs is cut in two where the levels on both sides differ most against the
    scatter from run to run. That scatter, unlike the one inside a single run, contains what changes between
    runs as a whole.

    Parameters
    ----------
    runs, labels
        As in :func:`series_values`; five or more runs, or nothing can be told.
    levels, alpha, min_change_pct, skip_warmup
        As in :func:`torchtrt_viz.analysis.compare`; ``alpha`` covers the whole table.

    Returns
    -------
    pandas.DataFrame
        ``level``, ``name``, ``run_id``, ``domain``
            What ran.
        ``verdict``
            slower or faster (from ``since`` on), unclear (no cut stands out against the noise), added or
            removed (``since`` is the first run with, or without it).
        ``change_pct``
            Level from ``since`` on against the level before, percent; NA for added and removed.
        ``since``, ``label``
            First run at the new level, and its label; NA where nothing changed.
        ``before_ns``, ``after_ns``
            Mean over the runs before and from ``since`` on, ns; NA where it did not run.
        ``noise_pct``
            Scatter from run to run on either side of the cut (coefficient of variation), percent; NA with
            fewer than three runs.
        ``runs``
            Runs in which it ran.
        ``p_value``
            Corrected for all cuts and all rows; NA without a test.
    """
    names = _labels(runs, labels)
    values = series_values(runs, labels=names, levels=levels, skip_warmup=skip_warmup)
    rows: list[dict[str, Any]] = []
    keys = ["level", "name", "run_id", "domain"]
    for key, part in values.groupby(keys, sort=False, dropna=False):
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        row |= _cut(part["run"].to_numpy(), part["ns"].to_numpy(), len(runs))
        rows.append(row)
    tested = [row for row in rows if row["p"] is not None]
    for row, corrected in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p"] = corrected
        change = row["after"] / row["before"] - 1.0 if row["before"] > 0 else math.nan
        if corrected < alpha and abs(change) >= min_change_pct / 100.0:
            row["verdict"] = "slower" if change > 0 else "faster"
        else:
            row["verdict"], row["since"] = "unclear", None
    return _frame(rows, names)


def _cut(at: NDArray[Any], values: Floats, runs: int) -> dict[str, Any]:
    """Return the best cut of one series."""
    out: dict[str, Any] = {
        "runs": len(values),
        "p": None,
        "since": None,
        "before": math.nan,
        "after": math.nan,
        "noise": math.nan,
        "verdict": "unclear",
    }
    if len(values) < runs:
        first, last = int(at.min()), int(at.max())
        if first > 0 and last == runs - 1 and len(values) == runs - first:
            out |= {"verdict": "added", "since": first, "after": float(values.mean())}
            return out
        if first == 0 and last < runs - 1 and len(values) == last + 1:
            out |= {"verdict": "removed", "since": last + 1, "before": float(values.mean())}
            return out
    if len(values) < 5 or not (values > 0).all():
        return out
    logs = np.log(values)
    best = None
    for cut in range(1, len(logs)):
        left, right = logs[:cut], logs[cut:]
        squares = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
        freedom = len(logs) - 2
        error = math.sqrt(squares / freedom * (1.0 / cut + 1.0 / len(right)))
        difference = abs(float(right.mean() - left.mean()))
        t = math.inf if error == 0.0 and difference > 0 else difference / error if error > 0 else 0.0
        if best is None or t > best[0]:
            best = (t, cut, math.sqrt(squares / freedom))
    assert best is not None
    t, cut, noise = best
    # every cut was looked at
    out["p"] = min(1.0, 2.0 * float(student_tail(t, len(logs) - 2)) * (len(logs) - 1))
    out |= {
        "since": int(at[cut]),
        "before": float(values[:cut].mean()),
        "after": float(values[cut:].mean()),
        "noise": noise,
    }
    return out


def _frame(rows: list[dict[str, Any]], labels: list[str]) -> pd.DataFrame:
    def column(name: str) -> Floats:
        return np.array([math.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)

    since = [row["since"] for row in rows]
    before, after = column("before"), column("after")
    known = [number is not None for number in since]
    change = np.where(
        [row["verdict"] in ("slower", "faster") for row in rows], after / before - 1.0, math.nan
    )
    frame = pd.DataFrame(
        {
            **{name: text([row[name] for row in rows]) for name in ("level", "name", "run_id", "domain")},
            "verdict": pd.Categorical(
                [row["verdict"] for row in rows], categories=list(VERDICTS), ordered=True
            ),
            "change_pct": floats(100.0 * change),
            "since": integers([number or 0 for number in since], known),
            "label": text([None if number is None else labels[number] for number in since]),
            "before_ns": floats(before),
            "after_ns": floats(after),
            "noise_pct": floats(100.0 * column("noise")),
            "runs": integers([row["runs"] for row in rows]),
            "p_value": floats(column("p")),
        }
    )
    size = np.nan_to_num(np.abs(after - before))
    ordered = np.lexsort((-size, frame["verdict"].cat.codes.to_numpy()))
    return frame.iloc[ordered].reset_index(drop=True)
