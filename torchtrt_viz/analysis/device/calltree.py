"""Call trees and flame graphs: who called whom, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.by_name import CALL_TREE, FLAME_GRAPH, FOLDED_STACKS
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.device_sums import DeviceSums, device_sums
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.groups import exact_sums
from torchtrt_viz.analysis.core.host_threads import exclusive_times, os_threads
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import among, choice, codes, measured
from torchtrt_viz.analysis.core.recovered import Recovered, recovered
from torchtrt_viz.analysis.core.stated import Stated, stated
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.schema import KINDS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["call_tree", "flame_graph", "folded_stacks"]

Ints = NDArray[np.int64]

_STEP = "ProfilerStep"


@returns(CALL_TREE)
def call_tree(
    trace: TraceData,
    *,
    value: str = "host",
    kinds: Iterable[str] | None = None,
    by_thread: bool = False,
    by_step: bool = False,
) -> pd.DataFrame:
    """Calls with the same path of names above them, merged: a tree of who called whom.

    The path is that of the recorded nesting: Python frames, annotations, operators, runtime calls. Spans of
    kinds that are left out are skipped, their children move up. What several recorders saw of one thread
    is one stack, and each moment of it belongs to one call: the tree's host time is never more than the time
    in which something was recorded on its threads.

    Parameters
    ----------
    value
        ``host``: host time; ``gpu``: the durations of the device work that was launched, so that the tree
        shows which code the device works for. Work of graphs stands below what was recovered of their
        capture, and that below the launch. A profile of sums alone is a tree itself, with kernels.
    kinds
        Kinds of host spans to keep; None: all.
    by_thread
        Keep threads apart: their labels are the roots.
    by_step
        Keep the profiler's steps apart; otherwise they are all one.

    Returns
    -------
    pandas.DataFrame
        One row per path of names.

        Overlapping spans of one thread are siblings.

    Examples
    --------
    >>> tree = tv.analysis.call_tree(trace, kinds=["step", "operator"])
    >>> tree[["name", "depth", "calls"]].head(2).to_dict("records")
    [{'name': 'ProfilerStep', 'depth': 0, 'calls': 4}, {'name': 'aten::add', 'depth': 1, 'calls': 48}]
    """
    choice("value", value, ("host", "gpu"))
    spans = trace.spans
    mask = among(spans["domain"], ("host",)) & measured(trace)
    if kinds is not None:
        wanted = tuple(kinds)
        for kind in wanted:
            if kind not in KINDS:
                raise OptionError("kinds", kind, "some of " + ", ".join(KINDS))
        mask &= among(spans["kind"], wanted)
        kinds = wanted
    rows = np.flatnonzero(mask)
    parent, own = exclusive_times(trace, mask)
    track = os_threads(trace)[spans["track"].to_numpy()]
    graphs = recovered(trace) if value == "gpu" else None
    if graphs is not None:
        mask, parent, track = _through_graphs(trace, graphs, mask, parent, track, kinds)
        rows = np.flatnonzero(mask)
    named = stated(trace) if value == "gpu" and (kinds is None or "operator" in kinds) else None
    if named is not None:
        mask, parent, rows = _through_stated(trace, named, mask, parent)
    sums = device_sums(trace) if value == "gpu" else None
    if sums is not None:
        mask, parent, rows = _through_sums(trace, sums, mask, parent, kinds)
    node_of, nodes = _merge(trace, rows, parent, track, by_thread, by_step)
    if sums is not None:
        self_ns = exact_sums(node_of[rows], sums.own[rows], len(nodes))
        counts = np.where(sums.calls[rows] >= 0, sums.calls[rows], 1)
        nodes["calls"] = exact_sums(node_of[rows], counts, len(nodes))
    elif value == "host":
        self_ns = exact_sums(node_of[rows], own[rows], len(nodes))
    else:
        self_ns = _launched(trace, node_of, parent, mask, len(nodes))
    return nodes.assign(total_ns=_roll_up(nodes, self_ns), self_ns=self_ns)


def _through_graphs(
    trace: TraceData,
    graphs: Recovered,
    mask: NDArray[np.bool_],
    parent: Ints,
    track: Ints,
    kinds: Iterable[str] | None,
) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Put what was recovered for graphs below their launches: rows of the tree, their parents and threads."""
    wanted = graphs.rows if kinds is None else graphs.rows & among(trace.spans["kind"], kinds)
    above = nearest(graphs.parent, wanted)
    launch = graphs.launch
    host = np.where((launch >= 0) & ~mask[launch], parent[launch], launch)
    out = np.where(wanted, np.where(above >= 0, above, host), parent)
    lane = np.where(wanted & (launch >= 0), track[launch], track)
    return mask | wanted, out, lane


def _through_stated(
    trace: TraceData, named: Stated, mask: NDArray[np.bool_], parent: Ints
) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Put operators that the recording states below the call that launched their first piece of work."""
    found = launches(trace)
    owner = named.owner[found.work.row]
    first = np.full(len(mask), -1, np.int64)
    known = np.flatnonzero(owner >= 0)[::-1]  # work is ordered by start
    first[owner[known]] = found.host[known]
    above = np.where((first >= 0) & ~mask[first], parent[first], first)
    out = mask | named.rows
    return out, np.where(named.rows, above, parent), np.flatnonzero(out)


def _through_sums(
    trace: TraceData, sums: DeviceSums, mask: NDArray[np.bool_], parent: Ints, kinds: Iterable[str] | None
) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Add the nodes of a profile of sums, kernels among them: rows of the tree, and their parents."""
    wanted = sums.rows if kinds is None else sums.rows & (sums.work | among(trace.spans["kind"], kinds))
    above = nearest(trace.spans["parent"].to_numpy(), wanted)
    out = mask | wanted
    return out, np.where(wanted, above, parent), np.flatnonzero(out)


def _merge(
    trace: TraceData, rows: Ints, parent: Ints, track: Ints, by_thread: bool, by_step: bool
) -> tuple[Ints, pd.DataFrame]:
    """Give every call its node, level by level."""
    spans = trace.spans
    name = codes(spans["name"]).astype(np.int64)
    kind = codes(spans["kind"]).astype(np.int64)
    names = spans["name"].cat.categories.to_numpy(dtype=object)
    steps = np.flatnonzero(among(spans["kind"], ("step",)))
    if len(steps) and not by_step:
        names = np.append(names, _STEP)
        name[steps] = len(names) - 1
    node_of = np.full(len(spans), -1, np.int64)
    width = len(names) + 1
    parts: list[dict[str, Any]] = []
    count = 0
    root_of = np.full(len(trace.tracks), -1, np.int64)
    if by_thread:
        used = np.unique(track[rows])
        root_of[used] = np.arange(len(used))
        labels = trace.tracks["label"].to_numpy(dtype=object)[used]
        parts.append(
            {
                "parent": np.full(len(used), -1),
                "depth": np.zeros(len(used)),
                "name": labels,
                "kind": np.full(len(used), "thread", dtype=object),
                "calls": np.ones(len(used)),
            }
        )
        count = len(used)
    level = rows[parent[rows] < 0]
    depth = int(by_thread)
    waiting = rows[parent[rows] >= 0]
    while len(level):
        above = np.where(parent[level] >= 0, node_of[np.maximum(parent[level], 0)], root_of[track[level]])
        key = ((above + 1) * width + name[level] + 1) * len(KINDS) + kind[level]
        unique, first, inverse, calls = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        node_of[level] = count + inverse.reshape(-1)
        named = name[level[first]]
        parts.append(
            {
                "parent": above[first],
                "depth": np.full(len(unique), depth),
                "name": np.where(named >= 0, names[np.maximum(named, 0)], ""),
                "kind": np.array(KINDS, dtype=object)[kind[level[first]]],
                "calls": calls,
            }
        )
        count += len(unique)
        ready = node_of[parent[waiting]] >= 0
        level, waiting = waiting[ready], waiting[~ready]
        depth += 1
    columns = ("parent", "depth", "name", "kind", "calls")
    empty: dict[str, Any] = {
        name: np.zeros(0, object if name in ("name", "kind") else np.int64) for name in columns
    }
    parts.insert(0, empty)
    frame = pd.DataFrame({column: np.concatenate([part[column] for part in parts]) for column in columns})
    for column in ("parent", "depth", "calls"):
        frame[column] = frame[column].astype(np.int64)
    frame.insert(0, "node", np.arange(len(frame)))
    return node_of, frame


def _roll_up(nodes: pd.DataFrame, values: Ints) -> Ints:
    """Add every node's value to the nodes above it."""
    total = values.copy()
    parent, depth = nodes["parent"].to_numpy(), nodes["depth"].to_numpy()
    for level in range(int(depth.max()) if len(depth) else 0, 0, -1):
        at = np.flatnonzero(depth == level)
        np.add.at(total, parent[at], total[at])
    return total


def _launched(trace: TraceData, node_of: Ints, parent: Ints, mask: NDArray[np.bool_], size: int) -> Ints:
    work = device_work(trace)
    found = launches(trace, work)
    host = found.host
    # the launching call itself may have been left out of the tree
    place = np.where(host >= 0, np.where(mask[np.maximum(host, 0)], host, parent[np.maximum(host, 0)]), -1)
    graphs = recovered(trace)
    if graphs is not None:
        owner = graphs.owner[work.row]
        above = nearest(graphs.parent, mask & graphs.rows)[owner]
        owner = np.where((owner >= 0) & ~mask[owner], above, owner)
        place = np.where(owner >= 0, owner, place)
    named = stated(trace)
    if named is not None:
        owner = named.owner[work.row]
        place = np.where((owner >= 0) & mask[np.maximum(owner, 0)], owner, place)
    known = place >= 0
    return exact_sums(node_of[place[known]], work.dur[known], size)


@returns(FLAME_GRAPH)
def flame_graph(
    trace: TraceData,
    *,
    value: str = "host",
    kinds: Iterable[str] | None = None,
    by_thread: bool = False,
    by_step: bool = False,
    min_pct: float = 0.0,
) -> pd.DataFrame:
    """Lay a call tree out as a flame graph: one box per node, children side by side under their caller.

    Parameters
    ----------
    value, kinds, by_thread, by_step
        As in :func:`call_tree`.
    min_pct
        Leave out boxes narrower than this share of the whole, percent.

    Returns
    -------
    pandas.DataFrame
        One row per box of a flame graph.

    Examples
    --------
    >>> boxes = tv.analysis.flame_graph(trace, kinds=["step", "operator"], min_pct=1.0)
    >>> boxes["name"].head(2).tolist()
    ['ProfilerStep', 'aten::add']
    """
    tree = call_tree(trace, value=value, kinds=kinds, by_thread=by_thread, by_step=by_step)
    total = tree["total_ns"].to_numpy()
    parent, depth = tree["parent"].to_numpy(), tree["depth"].to_numpy()
    left = np.zeros(len(tree), np.int64)
    for level in range(int(depth.max()) + 1 if len(depth) else 0):
        at = np.flatnonzero(depth == level)
        at = at[np.lexsort((-total[at], parent[at]))]
        reach = np.cumsum(total[at]) - total[at]
        new = np.ones(len(at), bool)
        new[1:] = parent[at][1:] != parent[at][:-1]
        begin = np.maximum.accumulate(np.where(new, np.arange(len(at)), 0))
        base = np.where(parent[at] >= 0, left[np.maximum(parent[at], 0)], 0)
        left[at] = base + reach - reach[begin]
    whole = int(total[depth == 0].sum())
    pct = 100.0 * total / whole if whole else np.zeros(len(total))
    frame = tree.assign(left_ns=left, pct=pct)
    return frame[pct >= min_pct].reset_index(drop=True)


@returns(FOLDED_STACKS)
def folded_stacks(
    trace: TraceData,
    *,
    value: str = "host",
    kinds: Iterable[str] | None = None,
    by_thread: bool = False,
    by_step: bool = False,
) -> pd.DataFrame:
    """Write a call tree as folded stacks, the text form that flame-graph tools read.

    Parameters
    ----------
    value, kinds, by_thread, by_step
        As in :func:`call_tree`.

    Returns
    -------
    pandas.DataFrame
        One row per path of names that has time of its own.

    Examples
    --------
    >>> tv.analysis.folded_stacks(trace, kinds=["step", "operator"])["stack"].head(2).tolist()
    ['ProfilerStep', 'ProfilerStep;aten::add']
    """
    tree = call_tree(trace, value=value, kinds=kinds, by_thread=by_thread, by_step=by_step)
    paths: list[str] = []
    for name, parent in zip(tree["name"], tree["parent"], strict=True):
        own = str(name).replace(";", ",").replace("\n", " ")
        paths.append(own if parent < 0 else f"{paths[parent]};{own}")
    frame = pd.DataFrame({"stack": np.array(paths, dtype=object), "self_ns": tree["self_ns"].to_numpy()})
    return frame[frame["self_ns"] > 0].reset_index(drop=True)
