"""From device work back to the host: which call launched it, and which operator made that call."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.core.device_work import INPUTS, DeviceWork, device_work
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.masks import among, ints, measured, names_matching
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.analysis.core.stated import stated
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = [
    "GRAPH_LAUNCH",
    "Launches",
    "calling_parent",
    "launches",
    "of_graphs",
    "operator_rows",
    "operators_of",
]

Ints = NDArray[np.int64]


GRAPH_LAUNCH = re.compile(r"GraphLaunch")
"""Names of the calls that launch a CUDA or HIP graph."""

_INPUTS = {
    "spans": (*INPUTS["spans"], "correlation"),
    "tracks": INPUTS["tracks"],
    "flows": ("source", "target"),
}


@dataclass(frozen=True)
class Launches:
    """Device work with the host call that launched each piece.

    Attributes
    ----------
    work
        The device work, ordered by start.
    host
        Row of the launching host span, -1 where the trace does not tell.
    """

    work: DeviceWork
    host: Ints


def launches(trace: TraceData, work: DeviceWork | None = None) -> Launches:
    """Find the launching host span of every piece of device work.

    The correlation id decides; where a piece has none, a flow that ends at it does. One call may launch
    many kernels (a CUDA graph). When several host spans carry an id, the one of kind runtime that started
    last wins: a driver call inside a runtime call is the launch itself.
    """
    if work is None or work is device_work(trace):
        return kept(trace, "launches", _INPUTS, lambda: _launches(trace, device_work(trace)))
    return _launches(trace, work)


def _launches(trace: TraceData, work: DeviceWork) -> Launches:
    spans = trace.spans
    correlation = filled(spans["correlation"])
    candidates = np.flatnonzero(
        (correlation > 0)
        & among(spans["domain"], ("host",))
        & among(spans["kind"], ("runtime",))
        & measured(trace)
    )
    start = ints(spans["start_ns"])[candidates]
    if (np.diff(start) < 0).any():
        candidates = candidates[np.argsort(start, kind="stable")]
    wanted = correlation[work.row]
    host = _lookup(wanted, correlation[candidates], candidates)
    host[wanted <= 0] = -1
    missing = host < 0
    if missing.any() and len(trace.flows):
        by_target = _flow_sources(trace)
        host[missing] = by_target[work.row[missing]]
    host.flags.writeable = False
    return Launches(work, host)


def operator_rows(trace: TraceData, kinds: Iterable[str] = ("operator",)) -> NDArray[np.bool_]:
    """Say for each span whether it is one of these kinds, on the host, recovered for a graph or stated."""
    spans = trace.spans
    out: NDArray[np.bool_] = among(spans["domain"], ("host",)) & measured(trace)
    graphs = recovered(trace)
    if graphs is not None:
        out = out | graphs.rows
    named = stated(trace)
    if named is not None:
        out = out | named.rows
    return out & among(spans["kind"], kinds)


def calling_parent(trace: TraceData) -> Ints:
    """Return the row around every span: on its thread, and for what was recovered for a graph its launch."""
    parent = host_nesting(trace).parent
    graphs = recovered(trace)
    if graphs is None:
        return parent
    return np.where(graphs.root, graphs.launch, parent)


def of_graphs(trace: TraceData, found: Launches) -> NDArray[np.bool_]:
    """Say for each piece of device work whether the launch of a graph ran it."""
    is_graph = names_matching(trace.spans["name"], GRAPH_LAUNCH) & among(trace.spans["domain"], ("host",))
    return (found.host >= 0) & is_graph[found.host]


def operators_of(trace: TraceData, found: Launches, is_operator: NDArray[np.bool_]) -> Ints:
    """Return for every piece of device work the row of the innermost operator that launched it, -1 unknown.

    That is the operator around the launching call; where the call is not in the trace, the operator with
    the same external id. Work of a graph is of the operator that was recovered from the graph's capture. What
    the recording itself states for the work stands before all of these.
    """
    above = nearest(calling_parent(trace), is_operator)
    out = np.where(found.host >= 0, above[found.host], -1)
    graphs = recovered(trace)
    if graphs is not None:
        owner = graphs.owner[found.work.row]
        known = owner >= 0
        out[known] = np.where(is_operator[owner[known]], owner[known], above[owner[known]])
    named = stated(trace)
    if named is not None:
        owner = named.owner[found.work.row]
        known = (owner >= 0) & is_operator[np.maximum(owner, 0)]
        out[known] = owner[known]
    missing = out < 0
    if missing.any():
        external = filled(trace.spans["external_id"])
        candidates = np.flatnonzero(is_operator & (external > 0))
        wanted = external[found.work.row[missing]]
        by_id = _lookup(wanted, external[candidates], candidates)
        by_id[wanted <= 0] = -1
        out[missing] = by_id
    return out


def _lookup(wanted: Ints, keys: Ints, rows: Ints) -> Ints:
    """Return the row of each wanted key, -1 where absent; of equal keys the last one wins."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < 16 * len(keys) + 4096:
        # ids are mostly counted up: a table of all of them is small, and needs no order
        table = np.full(high - low + 2, -1, np.int64)  # the last entry is for ids out of range
        table[keys - low] = rows
        place = wanted - low
        out: Ints = table[np.where((place >= 0) & (place <= high - low), place, high - low + 1)]
        return out
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    position = np.searchsorted(keys, wanted, side="right") - 1
    inside = np.maximum(position, 0)
    out = np.where((position >= 0) & (keys[inside] == wanted), rows[inside], -1)
    return out


def _flow_sources(trace: TraceData) -> Ints:
    out = np.full(len(trace.spans), -1, np.int64)
    source, target = filled(trace.flows["source"]), filled(trace.flows["target"])
    known = (source >= 0) & (target >= 0)
    source, target = source[known], target[known]
    host = (among(trace.spans["domain"], ("host",)) & measured(trace))[source]
    out[target[host]] = source[host]
    return out
