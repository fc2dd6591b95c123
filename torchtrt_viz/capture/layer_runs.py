"""Reports of a layer profiler, sorted into executions and layers, and written as a TREX profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LayerRuns", "sort_runs", "trex_profile"]


@dataclass(frozen=True)
class LayerRuns:
    """Layers in the order of execution, one row each.

    Attributes
    ----------
    names
        Name of each layer as reported; equal names are different layers.
    calls
        Executions in which it was reported.
    total_ns, median_ns
        Sum and median of its times.
    runs
        Number of executions.
    known
        Whether it is known where an execution begins: from marks, or because the reports repeat.
    dropped
        Reports that gave no time (negative, or not a number).
    """

    names: list[str]
    calls: NDArray[np.int64]
    total_ns: NDArray[np.int64]
    median_ns: NDArray[np.int64]
    runs: int
    known: bool
    dropped: int


def sort_runs(columns: Mapping[str, Any], first: int = 0, layers: int | None = None) -> LayerRuns:
    """Sort reports (``torchtrt_viz._native.layer_times.Columns``) from row ``first`` on into executions.

    Where an execution begins is told by marks; without any, by the engine's number of ``layers`` where the
    reports repeat with it, or by the shortest sequence of names that they repeat.
    """
    names = np.asarray(columns["name"])[first:]
    dur = np.asarray(columns["dur_ns"])[first:]
    marks = np.asarray(columns["marks"]) - first
    marks = marks[(marks >= 0) & (marks <= len(names))]
    run, known = _runs(names, marks, layers)
    good = dur >= 0
    key, order = _keys(names, run)
    count = len(order)
    calls = np.bincount(key[good], minlength=count)
    total = np.zeros(count, np.int64)
    np.add.at(total, key[good], dur[good])
    median = np.zeros(count, np.int64)
    sorted_rows = np.lexsort((dur[good], key[good]))
    values, keys = dur[good][sorted_rows], key[good][sorted_rows]
    starts = np.searchsorted(keys, np.arange(count))
    for layer in range(count):
        part = values[starts[layer] : starts[layer] + calls[layer]]
        if len(part):
            median[layer] = int(np.median(part))
    return LayerRuns(
        [columns["names"][name] for name in order],
        calls.astype(np.int64),
        total,
        median,
        int(run.max()) + 1 if len(run) else 0,
        known,
        int((~good).sum()),
    )


def _runs(
    names: NDArray[np.int32], marks: NDArray[np.int64], layers: int | None
) -> tuple[NDArray[np.int64], bool]:
    """Number of the execution of each report, and whether that is known."""
    rows = np.arange(len(names))
    if len(marks):
        # marks without a report between them are executions that reported nothing
        kept = np.unique(marks[marks < len(names)])
        run = np.searchsorted(kept, rows, side="right") - 1
        return run - run.min() if len(run) else run, True
    if len(names) == 0:
        return rows, True
    periods = (np.flatnonzero(names[1:] == names[0]) + 1).tolist()
    if layers and (layers == len(names) or layers in periods):
        periods.insert(0, layers)
    for period in periods:
        # a sequence has to be seen twice to be one, unless the engine says how long it is
        if (period == layers or 2 * period <= len(names)) and np.array_equal(names[period:], names[:-period]):
            return rows // period, True
    # no repetition: one execution, unless its first layer comes again
    again = np.cumsum(names == names[0]) - 1
    return again, bool(again.max() == 0)


def _keys(names: NDArray[np.int32], run: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[int]]:
    """Number of the layer of each report: a name and how often it occurred before in the same execution."""
    rows = np.lexsort((np.arange(len(names)), names, run))
    same = np.zeros(len(names), np.int64)
    if len(names):
        sorted_names, sorted_runs = names[rows], run[rows]
        fresh = np.ones(len(names), bool)
        fresh[1:] = (sorted_names[1:] != sorted_names[:-1]) | (sorted_runs[1:] != sorted_runs[:-1])
        begin = np.maximum.accumulate(np.where(fresh, np.arange(len(names)), 0))
        same[rows] = np.arange(len(names)) - begin
    pairs: dict[tuple[int, int], int] = {}
    key = np.empty(len(names), np.int64)
    for row, pair in enumerate(zip(names.tolist(), same.tolist(), strict=True)):
        key[row] = pairs.setdefault(pair, len(pairs))
    return key, [name for name, _ in pairs]


def trex_profile(layers: LayerRuns) -> bytes:
    """Return the layers as trtexec's ``--exportProfile`` writes them: count, then times and share of each."""
    whole = int(layers.total_ns.sum())
    rows: list[dict[str, Any]] = [{"count": layers.runs}]
    for name, calls, total, median in zip(
        layers.names, layers.calls.tolist(), layers.total_ns.tolist(), layers.median_ns.tolist(), strict=True
    ):
        rows.append(
            {
                "name": name,
                "timeMs": total / 1e6,
                "averageMs": total / calls / 1e6 if calls else None,
                "medianMs": median / 1e6 if calls else None,
                "percentage": 100 * total / whole if whole else None,
            }
        )
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False).encode()
