"""Durations as samples: for each thing that ran, how long it took in each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.device_work import work_mask
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.masks import among, choice, strings
from torchtrt_viz.analysis.core.steps import iteration_of, iterations
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.engine.delegate_calls import delegate_calls
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["LEVELS", "Samples", "samples"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LEVELS = ("method", "delegate", "phase", "layer", "operator", "kernel")


@dataclass(frozen=True)
class Samples:
    """Samples of every key at one level.

    Attributes
    ----------
    level
        One of `LEVELS`.
    domain
        host or gpu for each key.
    keys
        One row per key: ``name`` and ``run_id`` (missing where there is none).
    calls
        Calls of each key within the samples.
    basis
        ``iteration``: a sample is the time of all calls in one iteration; ``call``: of one call; ``mean``:
        one value per key, an average whose scatter was not recorded.
    values
        One array of ns per key.
    """

    level: str
    domain: list[str]
    keys: pd.DataFrame
    calls: Ints
    basis: str
    values: list[Floats]


def samples(trace: TraceData, level: str, *, skip_warmup: bool = True, per_call: bool = False) -> Samples:
    """Return what each thing at one level took, iteration by iteration.

    Operators count with their self time, so that a change is seen where it happened and not in everything
    around it; everything else counts with its duration. An iteration in which a thing did not run is not a
    sample of it.

    Parameters
    ----------
    level
        method, delegate, phase, layer, operator or kernel.
    skip_warmup
        Leave out the iterations that :func:`torchtrt_viz.analysis.iterations` marks as warm-up.
    per_call
        Take the time of each call as a sample, even if there are iterations.
    """
    choice("level", level, LEVELS)
    spans = trace.spans
    mask, values = _selection(trace, level)
    real = mask & among(spans["timing"], ("measured", "modeled"))
    if not real.any() and (mask & among(spans["timing"], ("aggregate",))).any():
        return _aggregates(trace, level, np.flatnonzero(mask))
    number = iteration_of(trace)
    if skip_warmup:
        listed = iterations(trace)
        warm = listed[listed["warmup"]]["iteration"].to_numpy()
        real &= ~np.isin(number, warm)
    by_iteration = not per_call and len(np.unique(number[real & (number >= 0)])) >= 2
    if by_iteration:
        real &= number >= 0
    rows = np.flatnonzero(real)
    groups = _keys(trace, rows, level)
    durations = values[rows]
    if by_iteration:
        per_iteration, key_of = _sums(groups, number[rows], durations)
    else:
        per_iteration, key_of = durations.astype(np.float64), groups.codes
    ordered = np.argsort(key_of, kind="stable")
    bounds = np.searchsorted(key_of[ordered], np.arange(groups.size + 1))
    grouped = per_iteration[ordered]
    first = rows[groups.first_row()] if groups.size else np.zeros(0, np.int64)
    return Samples(
        level=level,
        domain=[str(value) for value in strings(spans["domain"])[first]],
        keys=groups.labels,
        calls=groups.count(),
        basis="iteration" if by_iteration else "call",
        values=[grouped[begin:stop] for begin, stop in pairwise(bounds)],
    )


def _selection(trace: TraceData, level: str) -> tuple[NDArray[np.bool_], Ints]:
    spans = trace.spans
    dur, self_ns = spans["dur_ns"].to_numpy(), spans["self_ns"].to_numpy()
    if level == "kernel":
        return work_mask(trace), dur
    if level == "delegate":
        return delegate_calls(trace).call, dur
    mask = among(spans["kind"], (level,))
    if level == "layer":
        return mask, dur
    mask &= among(spans["domain"], ("host",))
    return mask, self_ns if level == "operator" else dur


def _keys(trace: TraceData, rows: Ints, level: str) -> Groups:
    spans = trace.spans
    names = spans["name"].array[rows]
    if level in ("operator", "kernel"):
        # the same kernel or operator of several instances is one thing
        none = pd.Categorical.from_codes(
            np.full(len(rows), -1, np.int8), categories=pd.Index([], dtype=object)
        )
        return Groups.by({"name": names, "run_id": none})
    instances = strings(spans["run_id"])[rows]
    if level == "delegate":
        return Groups.by({"name": text(delegate_calls(trace).instance[rows]), "run_id": text(instances)})
    return Groups.by({"name": names, "run_id": text(instances)})


def _sums(groups: Groups, number: Ints, durations: Ints) -> tuple[Floats, Ints]:
    """Sum each key's durations in each iteration; return the sums, ordered by iteration, and their keys."""
    cells = Groups.by({"key": groups.codes, "iteration": pd.Categorical(number)})
    keys = cells.labels["key"].to_numpy(dtype=np.int64)
    order = np.lexsort((cells.labels["iteration"].to_numpy(dtype=np.int64), keys))
    return cells.total(durations)[order].astype(np.float64), keys[order]


def _aggregates(trace: TraceData, level: str, rows: Ints) -> Samples:
    """Return one average per key: a sum over calls has no scatter."""
    table = layers(trace, untimed=False, sort=None)
    mean = table["mean_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    total = table["total_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    value = np.where(np.isnan(mean), total, mean)
    calls = table["calls"].to_numpy(dtype=np.int64, na_value=0)
    return Samples(
        level=level,
        domain=[str(domain) for domain in table["domain"]],
        keys=pd.DataFrame({"name": table["name"].to_numpy(), "run_id": table["engine"].to_numpy()}),
        calls=calls,
        basis="mean",
        values=[np.array([v]) for v in value],
    )
