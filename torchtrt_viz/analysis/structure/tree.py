"""A run as one tree: threads, modules, operators, kernels, the iterations merged.

The same call of every iteration is one node: the n-th of its name below the same caller. Nodes are numbered
so that each stands before what it encloses. A node's times are its own: host time of a call in which nothing
of the tree ran inside it, GPU time of device work alone. So the sums over all nodes are those of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.device_work import DeviceWork, device_work
from torchtrt_viz.analysis.core.groups import exact_sums
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.links import calling_parent, launches, operators_of
from torchtrt_viz.analysis.core.masks import among, codes, ints, measured, names_matching
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.analysis.core.steps import iteration_of, iterations, steady
from torchtrt_viz.analysis.structure.labels import MODULE, MODULE_FRAME, OUTSIDE, THREAD, Vocabulary
from torchtrt_viz.model.schema import KINDS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Entries", "Tree", "build"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Spans of these kinds are nodes, modules besides; the time of others is of the node around them.
_NODES = ("method", "delegate", "phase", "layer", "operator", "annotation", "communication")
#: Where a run has none of them, these are.
_OTHERWISE = ("python", "other")
#: What is nested deeper is no node of its own: no program is, and each level costs a round.
_DEEPEST = 400
_QUIET = "threads without operators"
_UNLAUNCHED = "work whose launch is not recorded"


@dataclass(frozen=True)
class Entries:
    """Times of single spans: the node that each belongs to, its iteration (-1 none) and ns."""

    node: Ints
    iteration: Ints
    ns: Ints

    def sums(self, size: int) -> Ints:
        """Return the exact sum of each node."""
        return exact_sums(self.node, self.ns, size)


@dataclass(frozen=True)
class Tree:
    """The nodes of a run; node 0 is its root.

    Attributes
    ----------
    label
        Number of a node's exact label in the `Vocabulary`.
    parent, size, depth
        The node around it (-1 for the root), nodes in its subtree with itself, and nodes above it.
    number, several
        Its place among its siblings of that label, from 0, and whether there are more of them.
    calls
        Calls, or pieces of device work, that are merged in it.
    host, gpu
        Host time and GPU time that are its own.
    iterations, all_iterations
        Numbers of the run's iterations that are not warm-up, and of all.
    """

    label: Ints
    parent: Ints
    size: Ints
    depth: Ints
    number: Ints
    several: Mask
    calls: Ints
    host: Entries
    gpu: Entries
    iterations: list[int]
    all_iterations: list[int]

    def __len__(self) -> int:
        return len(self.label)

    def children(self, node: int) -> Ints:
        """Return the nodes directly below one, in order."""
        found = []
        child, stop = node + 1, node + int(self.size[node])
        while child < stop:
            found.append(child)
            child += int(self.size[child])
        return np.array(found, np.int64)

    def inclusive(self, own: Ints) -> Ints:
        """Return for each node the sum of its own and all values below."""
        reach = np.concatenate(([0], np.cumsum(own)))
        at = np.arange(len(own))
        out: Ints = reach[at + self.size] - reach[at]
        return out


@dataclass
class _Things:
    """Calls and device work that become nodes, one entry each."""

    row: Ints  # in trace.spans
    above: Ints  # position here of what encloses it, -1 none
    start: Ints  # when the host called it
    label: Ints
    thread: Ints  # of what nothing encloses; -1 unknown
    iteration: Ints
    depth: Ints
    counts: Mask


def build(trace: TraceData, names: Vocabulary) -> Tree:
    """Return the tree of a run."""
    nesting = host_nesting(trace)
    on_host = nesting.thread >= 0
    inner = _nodes(trace, on_host)
    iteration = iteration_of(trace)
    work = device_work(trace)
    around = calling_parent(trace)
    inner, above, depth = _nested(around, inner)
    found = launches(trace, work)
    owner = operators_of(trace, found, inner)
    things = _things(trace, names, inner, above, depth, iteration, work, found.host, owner)

    host_rows = np.flatnonzero(on_host)
    own = np.where(inner, np.arange(len(inner)), above)[host_rows]
    place = np.full(len(trace.spans), -1, np.int64)
    place[things.row] = np.arange(len(things.row))
    where = np.where(own >= 0, place[own], -1)
    top = things.above < 0
    threads = _Threads(trace, things.thread[top])
    loose_keys = threads.key(nesting.thread[host_rows], iteration[host_rows])
    top_keys = threads.key(things.thread, things.iteration)
    keys = np.unique(np.concatenate((top_keys[top], loose_keys[where < 0])))
    labels = np.concatenate(([names.code("run", "run")], threads.labels(keys, names)))
    nodes = _merged(things, np.where(top, np.searchsorted(keys, top_keys) + 1, -1), labels)

    host_node = np.searchsorted(keys, loose_keys) + 1
    host_node = np.where(where >= 0, nodes.of[where], host_node)
    position = _positions(nodes, names)
    return _tree(
        nodes,
        position,
        Entries(position[host_node], iteration[host_rows], nesting.self_ns[host_rows]),
        Entries(position[nodes.of[place[work.row]]], iteration[work.row], work.dur),
        steady(trace),
        sorted(set(iterations(trace)["iteration"].tolist())),
    )


def _nodes(trace: TraceData, on_host: Mask) -> Mask:
    """Say for each span whether it is a node."""
    kind = trace.spans["kind"]
    modules = among(kind, ("python",)) & names_matching(trace.spans["name"], MODULE_FRAME)
    out = on_host & (among(kind, _NODES) | modules)
    graphs = recovered(trace)
    if graphs is not None:
        out |= graphs.rows
    if not out.any():
        out = on_host & among(kind, _OTHERWISE)
    return out


def _nested(around: Ints, inner: Mask) -> tuple[Mask, Ints, Ints]:
    """Return what is a node, the node around each, and how deep it is; what is too deep is none."""
    above = nearest(around, inner)
    rows = np.flatnonzero(inner)
    depth = np.full(len(around), -1, np.int64)
    by_parent = rows[np.argsort(above[rows], kind="stable")]
    parents = above[by_parent]
    level = by_parent[: np.searchsorted(parents, 0)]
    for deep in range(_DEEPEST):
        if not len(level):
            return inner, above, depth
        depth[level] = deep
        ordered = np.sort(level)
        first = np.searchsorted(parents, ordered, side="left")
        count = np.searchsorted(parents, ordered, side="right") - first
        reach = np.repeat(first - np.concatenate(([0], np.cumsum(count)[:-1])), count)
        level = by_parent[reach + np.arange(int(count.sum()))]
    kept = inner & (depth >= 0)
    return kept, nearest(around, kept), depth


def _things(
    trace: TraceData,
    names: Vocabulary,
    inner: Mask,
    above: Ints,
    depth: Ints,
    iteration: Ints,
    work: DeviceWork,
    launch: Ints,
    owner: Ints,
) -> _Things:
    rows = np.flatnonzero(inner)
    place = np.full(len(inner), -1, np.int64)
    place[rows] = np.arange(len(rows))
    start = ints(trace.spans["start_ns"])
    graphs = recovered(trace)
    counts = np.ones(len(rows), bool) if graphs is None else ~graphs.again[rows]
    thread = host_nesting(trace).thread
    of_launch = np.where(launch >= 0, thread[launch], -1)
    called = np.where(launch >= 0, start[launch], work.start)
    if graphs is not None:
        called = np.where(graphs.owner[work.row] >= 0, work.start, called)
    both = np.concatenate((rows, work.row))
    return _Things(
        row=both,
        above=np.concatenate(
            (np.where(above[rows] >= 0, place[above[rows]], -1), np.where(owner >= 0, place[owner], -1))
        ),
        start=np.concatenate((start[rows], called)),
        label=_labels(trace, names, both),
        thread=np.concatenate((thread[rows], of_launch)),
        iteration=iteration[both],
        depth=np.concatenate((depth[rows], np.where(owner >= 0, depth[owner] + 1, 0))),
        counts=np.concatenate((counts, np.ones(len(work), bool))),
    )


def _labels(trace: TraceData, names: Vocabulary, rows: Ints) -> Ints:
    """Return the exact labels of spans; each name is looked at once."""
    spans = trace.spans
    name, kind = codes(spans["name"])[rows].astype(np.int64), codes(spans["kind"])[rows].astype(np.int64)
    on_device = among(spans["domain"], ("gpu",))[rows] & measured(trace)[rows]
    key = ((name + 1) * (len(KINDS) + 1) + kind + 1) * 2 + on_device
    unique, place = np.unique(key, return_inverse=True)
    categories = spans["name"].cat.categories.to_numpy(dtype=object)
    kinds = spans["kind"].cat.categories
    out = np.empty(len(unique), np.int64)
    for at, value in enumerate(unique.tolist()):
        rest, device = divmod(value, 2)
        named, sort = divmod(rest, len(KINDS) + 1)
        what = str(kinds[sort - 1]) if sort else "other"
        if what == "python":
            what = MODULE
        elif what == "communication" and device:
            what = "collective"
        out[at] = names.code(what, str(categories[named - 1]) if named else "")
    found: Ints = out[place.reshape(-1)]
    return found


class _Threads:
    """The nodes below the root: threads, and for each what is in iterations and what is outside of them."""

    def __init__(self, trace: TraceData, used: Ints) -> None:
        self._text = trace.tracks["label"].to_numpy(dtype=object)
        self._busy = np.zeros(len(self._text) + 1, bool)  # the last one stands for "unknown"
        self._busy[used] = True

    def key(self, thread: Ints, iteration: Ints) -> Ints:
        """Return a number for each thread and side; threads without nodes are one."""
        size = len(self._text)
        number = np.where(thread < 0, size, np.where(self._busy[thread], thread, size + 1))
        out: Ints = number * 2 + (iteration < 0)
        return out

    def labels(self, keys: Ints, names: Vocabulary) -> Ints:
        """Return the labels of the threads' nodes."""
        size = len(self._text)
        own = {size: _UNLAUNCHED, size + 1: _QUIET}
        several = len(np.unique(keys % 2)) > 1
        out = []
        for key in keys.tolist():
            thread, outside = divmod(key, 2)
            text = own.get(thread) or str(self._text[thread])
            out.append(
                names.code(
                    OUTSIDE if thread in own else THREAD,
                    f"{text}, outside of iterations" if outside and several else text,
                )
            )
        return np.array(out, np.int64)


@dataclass
class _Nodes:
    """Nodes in the order in which they were found, level by level; the root is the first."""

    of: Ints  # node of each thing
    parent: Ints
    label: Ints
    number: Ints
    rank: NDArray[np.float64]
    calls: Ints
    depth: Ints


def _merged(things: _Things, top: Ints, first_labels: Ints) -> _Nodes:
    """Merge what has the same label and number below the same node."""
    size = len(things.row)
    of = np.full(size, -1, np.int64)
    # calls with the same caller are siblings; on top those of one thread and iteration are
    beside = np.where(things.above >= 0, things.above, size + top * (2**32) + things.iteration + 1)
    number = _running(beside, things.label, things.start)
    rank = _running(beside, np.zeros(size, np.int64), things.start)
    count = len(first_labels)
    parts = [
        (
            np.minimum(np.arange(count), 1) - 1,
            first_labels,
            np.zeros(count, np.int64),
            np.arange(count, dtype=np.float64),
            np.ones(count, np.int64),
            np.minimum(np.arange(count), 1),
        )
    ]
    by_depth = np.argsort(things.depth, kind="stable")
    bounds = np.searchsorted(things.depth[by_depth], np.arange(int(things.depth.max(initial=-1)) + 2))
    for deep in range(len(bounds) - 1):
        level = by_depth[bounds[deep] : bounds[deep + 1]]
        above = np.where(things.above[level] >= 0, of[things.above[level]], top[level])
        key = np.stack((above, things.label[level], number[level]))
        order = np.lexsort(key[::-1])
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(key[:, order], axis=1) != 0).any(axis=0)
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(new) - 1
        first = order[new]
        merged = np.bincount(place, minlength=len(first))
        parts.append(
            (
                above[first],
                things.label[level][first],
                number[level][first],
                np.bincount(place, weights=rank[level], minlength=len(first)) / np.maximum(merged, 1),
                np.bincount(place, weights=things.counts[level], minlength=len(first)).astype(np.int64),
                np.full(len(first), deep + 2),
            )
        )
        of[level] = count + place
        count += len(first)
    parent, label, numbers, ranks, calls, depth = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    return _Nodes(of, parent, label, numbers, ranks, calls, depth)


def _running(group: Ints, label: Ints, start: Ints) -> Ints:
    """Return for each thing how many of its group and label began before it."""
    order = np.lexsort((start, label, group))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(group[order]) != 0) | (np.diff(label[order]) != 0)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order)) - first
    return out


def _positions(nodes: _Nodes, names: Vocabulary) -> Ints:
    """Return the place of each node in an order in which a node stands before what it encloses."""
    size = _sizes(nodes)
    out = np.zeros(len(size), np.int64)
    order = np.lexsort((nodes.number, names.hashes(nodes.label), nodes.rank, nodes.parent, nodes.depth))
    parent = nodes.parent[order]
    reach = np.cumsum(size[order]) - size[order]
    new = np.ones(len(order), bool)
    new[1:] = np.diff(parent) != 0
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    behind = reach - reach[first]
    bounds = np.searchsorted(nodes.depth[order], np.arange(1, int(nodes.depth.max()) + 2))
    for begin, stop in pairwise(bounds.tolist()):
        out[order[begin:stop]] = out[parent[begin:stop]] + 1 + behind[begin:stop]
    return out


def _sizes(nodes: _Nodes) -> Ints:
    """Return how many nodes each subtree has."""
    size = np.ones(len(nodes.label), np.int64)
    order = np.argsort(nodes.depth, kind="stable")
    bounds = np.searchsorted(nodes.depth[order], np.arange(1, int(nodes.depth.max()) + 2))
    for begin, stop in reversed(list(pairwise(bounds.tolist()))):
        level = order[begin:stop]
        np.add.at(size, nodes.parent[level], size[level])
    return size


def _tree(
    nodes: _Nodes, position: Ints, host: Entries, gpu: Entries, kept: list[int], every: list[int]
) -> Tree:
    order = np.argsort(position)
    parent = nodes.parent[order]
    key = np.stack((nodes.parent, nodes.label))
    by_label = np.lexsort(key[::-1])
    equal = (np.diff(key[:, by_label], axis=1) == 0).all(axis=0)
    several = np.zeros(len(order), bool)
    several[by_label[1:]] |= equal
    several[by_label[:-1]] |= equal
    return Tree(
        label=nodes.label[order],
        parent=np.where(parent >= 0, position[parent], -1),
        size=_sizes(nodes)[order],
        depth=nodes.depth[order],
        number=nodes.number[order],
        several=several[order],
        calls=nodes.calls[order],
        host=host,
        gpu=gpu,
        iterations=kept,
        all_iterations=every,
    )
