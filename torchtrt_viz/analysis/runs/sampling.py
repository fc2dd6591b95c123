"""Durations as samples: for each thing that ran, how long it took in each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.device_work import DEVICE_KINDS, work_mask
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.lasting_names import lasting_name
from torchtrt_viz.analysis.core.masks import among, choice, codes, measured, strings
from torchtrt_viz.analysis.core.steps import iteration_of, iterations
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.engine.delegate_calls import delegate_calls
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.model.schema import DOMAINS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["LEVELS", "PROGRAM_LEVELS", "Samples", "exclusive_times_of", "key_rows", "samples"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PROGRAM_LEVELS = ("method", "delegate", "phase", "layer", "operator", "kernel")
"""What a program consists of; the other levels are what surrounds and calls it."""

LEVELS = (*PROGRAM_LEVELS, *("annotation", "step", "runtime", "memory", "communication", "python", "other"))
"""Every kind of span is at one level; level kernel has everything that devices execute."""

#: Calls of one name lie inside each other at these levels: durations would count one time twice.
_SELF = ("operator", "memory", "communication", "python", "other")


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
        One row per key: ``name``, ``run_id`` (missing where there is none) and ``domain``.
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

    Operators, Python functions, memory, communication and other spans count with their self time, so that a
    change is seen where it happened and not in everything around it; everything else counts with its
    duration. An iteration in which a thing did not run is not a sample of it.

    Parameters
    ----------
    level
        One of `LEVELS`.
    skip_warmup
        Leave out the iterations that :func:`torchtrt_viz.analysis.iterations` marks as warm-up.
    per_call
        Take the time of each call as a sample, even if there are iterations.
    """
    choice("level", level, LEVELS)
    spans = trace.spans
    mask, values = _selection(trace, level)
    # a part of a program may have a real duration and no known place; other modeled rows are derived
    timings = ("measured", "modeled") if level in PROGRAM_LEVELS else ("measured",)
    real = mask & among(spans["timing"], timings)
    if level == "layer" and not real.any() and (mask & among(spans["timing"], ("aggregate",))).any():
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
    return Samples(
        level=level,
        domain=[str(value) for value in groups.labels["domain"]],
        keys=groups.labels,
        calls=groups.count(),
        basis="iteration" if by_iteration else "call",
        values=[grouped[begin:stop] for begin, stop in pairwise(bounds)],
    )


def exclusive_times_of(trace: TraceData, level: str) -> dict[tuple[str, str | None, str], int]:
    """Return the measured time of each key of a level, ns, that no other key of any level counts.

    On the host that is self time; on devices the durations of work. Keys are name, instance and domain.
    """
    spans = trace.spans
    rows = np.flatnonzero(_of_level(trace, level) & measured(trace))
    groups = _keys(trace, rows, level)
    dur = np.where(work_mask(trace), spans["dur_ns"].to_numpy(), host_nesting(trace).self_ns)[rows]
    return dict(zip(key_rows(groups.labels), groups.total(dur).tolist(), strict=True))


def key_rows(keys: pd.DataFrame) -> list[tuple[str, str | None, str]]:
    """Return name, instance (None without one) and domain of each key."""
    columns = (keys[name].astype(object) for name in ("name", "run_id", "domain"))
    return [
        (str(name), None if pd.isna(run_id) else str(run_id), str(domain))
        for name, run_id, domain in zip(*columns, strict=True)
    ]


def _of_level(trace: TraceData, level: str) -> NDArray[np.bool_]:
    """Say for each span whether it is of this level; spans of no known domain are of none."""
    spans = trace.spans
    known = among(spans["domain"], DOMAINS)
    on_device = among(spans["domain"], ("gpu",)) & among(spans["kind"], DEVICE_KINDS)
    if level == "kernel":
        return on_device
    return known & among(spans["kind"], (level,)) & ~on_device


def _selection(trace: TraceData, level: str) -> tuple[NDArray[np.bool_], Ints]:
    spans = trace.spans
    dur = spans["dur_ns"].to_numpy()
    mask = _of_level(trace, level)
    if level == "delegate":
        return mask & delegate_calls(trace).call, dur
    if level in _SELF:
        nesting = host_nesting(trace)
        return mask, np.where(nesting.thread >= 0, nesting.self_ns, spans["self_ns"].to_numpy())
    return mask, dur


def _lasting_names(column: pd.Series, rows: Ints) -> pd.Categorical:
    """Return the names of rows without the numbers that are of one run."""
    found = codes(column)[rows]
    used, position = np.unique(found, return_inverse=True)
    names = [lasting_name(str(name)) for name in column.cat.categories.take(np.maximum(used, 0))]
    number, unique = pd.factorize(np.array(names, dtype=object))
    number[used < 0] = -1
    return pd.Categorical.from_codes(number[position.reshape(-1)], categories=pd.Index(unique, dtype=object))


def _keys(trace: TraceData, rows: Ints, level: str) -> Groups:
    spans = trace.spans
    plain = level in PROGRAM_LEVELS
    columns: dict[str, Any] = {
        "name": spans["name"].array[rows] if plain else _lasting_names(spans["name"], rows)
    }
    if level in ("phase", "layer", "delegate", "method"):
        columns["run_id"] = text(strings(spans["run_id"])[rows])
        if level == "delegate":
            columns["name"] = text(delegate_calls(trace).instance[rows])
    else:
        # the same kernel or operator of several instances is one thing
        columns["run_id"] = pd.Categorical.from_codes(
            np.full(len(rows), -1, np.int8), categories=pd.Index([], dtype=object)
        )
    columns["domain"] = spans["domain"].array[rows]
    return Groups.by(columns)


def _sums(groups: Groups, number: Ints, durations: Ints) -> tuple[Floats, Ints]:
    """Sum each key's durations in each iteration; return the sums, ordered by iteration, and their keys."""
    cells = Groups.by({"key": groups.codes, "iteration": pd.Categorical(number)})
    keys = cells.labels["key"].to_numpy(dtype=np.int64)
    order = np.lexsort((cells.labels["iteration"].to_numpy(dtype=np.int64), keys))
    return cells.total(durations)[order].astype(np.float64), keys[order]


def _aggregates(trace: TraceData, level: str, rows: Ints) -> Samples:
    """Return one average per key: a sum over calls has no scatter."""
    table = layers(trace, untimed=False, sort=None)
    table = table[table["domain"].notna()]
    mean = table["mean_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    total = table["total_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    value = np.where(np.isnan(mean), total, mean)
    calls = table["calls"].to_numpy(dtype=np.int64, na_value=0)
    return Samples(
        level=level,
        domain=[str(domain) for domain in table["domain"]],
        keys=pd.DataFrame(
            {
                "name": table["name"].to_numpy(),
                "run_id": table["engine"].to_numpy(),
                "domain": table["domain"].to_numpy(),
            }
        ),
        calls=calls,
        basis="mean",
        values=[np.array([v]) for v in value],
    )
