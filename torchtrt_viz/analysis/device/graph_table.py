"""Launches of graphs, and how much of their work was matched with their capture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.graph_table import GRAPHS
from torchtrt_viz.analysis.core.groups import exact_sums
from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.analysis.core.tables import integers, order, text
from torchtrt_viz.analysis.device.launch import graph_launches
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.graph_rows import MATCHES
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["graphs"]

Ints = NDArray[np.int64]

_NOT_GIVEN = (
    "no capture of this graph was loaded: load the folder that holds its trace as well, or name it in "
    "load(..., graphs=...)"
)
_NO_WORK = "the trace holds no work of this launch"


@returns(GRAPHS)
def graphs(trace: TraceData, *, sort: str | None = None, top: int | None = None) -> pd.DataFrame:
    """Launches of CUDA (or HIP) graphs: what each cost, and what is known of its kernels.

    Parameters
    ----------
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`; by default in the order of the launches.

    Returns
    -------
    pandas.DataFrame
        One row per launch of a graph, with its host time once, whatever it ran.

        ``attrs["coverage"]`` says how much of the work of all launches has its operator back (empty where
        they ran none).

    Examples
    --------
    >>> len(tv.analysis.graphs(trace))
    0
    """
    table = graph_launches(trace)
    found = launches(trace)
    host = table["host_row"].to_numpy()
    number = np.full(len(trace.spans), -1, np.int64)
    number[host] = np.arange(len(table))
    mine = np.flatnonzero(found.host >= 0)
    mine = mine[number[found.host[mine]] >= 0]
    launch, dur = number[found.host[mine]], found.work.dur[mine]
    joined = recovered(trace)
    match = np.full(len(mine), -1) if joined is None else joined.match[found.work.row[mine]]
    size = len(table)
    kernels = np.bincount(launch, minlength=size).astype(np.int64)
    counts = {
        name: np.bincount(launch[match == code], minlength=size).astype(np.int64)
        for code, name in enumerate((*MATCHES, "none"))
    }
    counts["none"] = np.bincount(launch[match < 0], minlength=size).astype(np.int64)
    matched = kernels - counts["none"]
    gpu = exact_sums(launch, dur, size)
    known = exact_sums(launch[match >= 0], dur[match >= 0], size)
    said = _said(trace, number, size)
    notes = [
        _NO_WORK
        if not kernels[row]
        else None
        if not counts["none"][row]
        else said[row].get("note", None if said[row] else _NOT_GIVEN)
        for row in range(size)
    ]
    frame = pd.DataFrame(
        {
            "host_row": host,
            "launched_by": table["launched_by"].to_numpy(dtype=object),
            "graph": text([one.get("graph") for one in said]),
            "batch": _numbers(said, "batch"),
            "mode": text([one.get("mode") for one in said]),
            "step_batch": _numbers(said, "step_batch"),
            "start_ns": table["start_ns"].to_numpy(),
            "host_ns": table["host_ns"].to_numpy(),
            "device": table["device"].array,
            "kernels": kernels,
            "gpu_ns": integers(gpu, kernels > 0),
            "gpu_busy_ns": table["device_busy_ns"].array,
            "gpu_span_ns": table["device_span_ns"].array,
            **counts,
            "ambiguous": _numbers(said, "ambiguous"),
            "matched_pct": _share(matched, kernels),
            "matched_gpu_pct": _share(known, gpu),
            "capture": text([one.get("capture") for one in said]),
            "note": text(notes),
        }
    )
    frame = order(GRAPHS.typed(frame), sort, top, ("host_row",))
    frame.attrs["coverage"] = _coverage(
        size, int(kernels.sum()), int(matched.sum()), int(known.sum()), int(gpu.sum())
    )
    return frame


def _coverage(launched: int, kernels: int, matched: int, known_ns: int, gpu_ns: int) -> str:
    if not kernels:
        return ""
    share = f", {100.0 * known_ns / gpu_ns:.4g} % of their {duration(gpu_ns)}" if gpu_ns else ""
    calls = count(launched, "graph launch", "graph launches")
    return f"{matched:,} of {count(kernels, 'kernel')} in {calls} have their operator back{share}."


def _said(trace: TraceData, number: Ints, size: int) -> list[dict[str, Any]]:
    """Return what the roots say of each launch; {} where nothing was compared."""
    out: list[dict[str, Any]] = [{} for _ in range(size)]
    joined = recovered(trace)
    if joined is None:
        return out
    roots = np.flatnonzero(joined.root & (joined.launch >= 0))
    for root, details in zip(roots.tolist(), trace.args.read(roots), strict=True):
        out[int(number[joined.launch[root]])] = details
    return out


def _numbers(said: list[dict[str, Any]], key: str) -> Any:
    values = [one.get(key) for one in said]
    return integers([value or 0 for value in values], [value is not None for value in values])


def _share(part: Ints, whole: Ints) -> Any:
    return pd.array(
        [
            None if not of else 100.0 * of_it / of
            for of_it, of in zip(part.tolist(), whole.tolist(), strict=True)
        ],
        dtype="Float64",
    )
