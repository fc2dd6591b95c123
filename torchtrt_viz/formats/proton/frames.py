"""A tree as a trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.lenient_json import parse_json
from torchtrt_viz.formats.producers.work_names import kind_by_rules, kind_on_device
from torchtrt_viz.formats.proton.tree import Node, Tree, tree_of
from torchtrt_viz.formats.session.rank_names import read_rank_name
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source

__all__ = ["read_tree"]

_KERNEL, _OPERATOR, _PYTHON = (schema.KINDS.index(kind) for kind in ("kernel", "operator", "python"))
_AGGREGATE, _MODELED = schema.TIMINGS.index("aggregate"), schema.TIMINGS.index("modeled")
_GPU = schema.DOMAINS.index("gpu")
_PYTHON_FRAME = re.compile(r".*\.pyc?:.*@\d+$|<[^>]+>:.*@\d+$", re.DOTALL)
_ROOT = "ROOT"
_SUM_LIMIT = 1 << 63
#: Key of a device -> what CUDA, and so torch.profiler, calls it.
_PROPERTIES = {"num_sms": "numSms", "clock_rate": "clockRate", "memory_clock_rate": "memoryClockRate"}


def read_tree(source: Source, options: LoadOptions) -> TraceData:
    """Read a tree.

    Raises
    ------
    TraceFormatError
        When none of its nodes has a time.
    """
    data = source.read()
    if options.progress is not None:
        options.progress(len(data), len(data))
    try:
        tree = tree_of(parse_json(data, source.name, options))
    except RecursionError:
        raise TraceFormatError(
            "the tree is nested too deeply",
            path=source.name,
            offset=0,
            expected="nodes nested as deep as calls are",
            found="thousands of levels",
            hint="Profile without Python frames: proton.start(..., context='shadow')",
        ) from None
    _check(tree, source)
    _report(tree, source.name, options)
    rank = _rank(source.name, options.rank)
    return _trace(tree, source, options, rank)


def _check(tree: Tree, source: Source) -> None:
    timed = [node for node in tree.nodes if node.time_ns is not None]
    if timed and sum(node.time_ns or 0 for node in timed) < _SUM_LIMIT:
        return
    keys = sorted({key for node in tree.nodes for key in node.metrics})[:12]
    raise TraceFormatError(
        "no node of the tree has a time" if not timed else "the times of the tree add up to centuries",
        path=source.name,
        offset=0,
        expected='nodes {"frame": {"name": ...}, "metrics": {"time (ns)": ...}, "children": [...]}',
        found=f"{len(tree.nodes)} nodes with {', '.join(keys) or 'no metrics'}",
        hint="Load the tree of a session that measures time: not samples of instructions, nor cycles",
    )


def _report(tree: Tree, path: str, options: LoadOptions) -> None:
    if tree.not_nodes:
        text = "elements without a frame that has a name were left out, with what is below them"
        options.repaired(Repair("not_a_node", text, path, count=tree.not_nodes))
    if tree.bad_times:
        text = "times that are negative, no numbers or longer than a century are none"
        options.repaired(Repair("invalid_duration", text, path, count=tree.bad_times))


def _rank(path: str, given: int | None) -> int:
    if given is not None:
        return given
    said = read_rank_name(path.replace("!", "/"))
    return -1 if said is None or said.rank is None else said.rank


def _trace(tree: Tree, source: Source, options: LoadOptions, rank: int) -> TraceData:
    # the root that Proton puts above everything is no event
    kept = [at for at, node in enumerate(tree.nodes) if not _is_root(node)]
    row_of = {at: row for row, at in enumerate(kept)}
    nodes = [tree.nodes[at] for at in kept]
    own = np.array([node.time_ns or 0 for node in nodes], np.int64)
    depth: list[int] = []
    for node in nodes:
        above = row_of.get(node.parent, -1)
        depth.append(depth[above] + 1 if above >= 0 else 0)
    places, tracks = _tracks(nodes, rank)
    count = len(nodes)
    spans = schema.SPANS.frame(
        {
            "name": [node.name for node in nodes],
            "kind": np.array([_kind(node) for node in nodes], np.int8),
            "domain": np.full(count, _GPU, np.int8),
            "timing": np.array([_MODELED if node.own_work else _AGGREGATE for node in nodes], np.int8),
            "track": np.array(places, np.int32),
            "start_ns": pd.array([None] * count, dtype="Int64"),
            "dur_ns": np.array([node.inclusive_ns for node in nodes], np.int64),
            "self_ns": own,
            "depth": np.array(depth, np.int32),
            "parent": np.array([row_of.get(node.parent, -1) for node in nodes], np.int64),
            "rank": rank,
        },
        count,
    )
    devices = _devices(tree)
    return TraceData(
        spans=spans,
        tracks=tracks,
        meta={
            "format": "proton",
            "sources": [source.name],
            "clock": "none: the profile holds sums over all executions",
            "rank": None if rank < 0 else rank,
            "warnings": options.warnings,
            "accounting": _accounting(tree, count),
            **({"deviceProperties": devices, "devices": {d["id"]: d for d in devices}} if devices else {}),
        },
        args=MappingArgs([node.metrics for node in nodes]),
    )


def _is_root(node: Node) -> bool:
    return node.parent < 0 and node.name == _ROOT and node.time_ns is None


def _kind(node: Node) -> int:
    if node.time_ns is None:
        return _PYTHON if _PYTHON_FRAME.match(node.name) else _OPERATOR
    found = kind_on_device(node.name)
    return found if found >= 0 else kind_by_rules(_KERNEL, node.name)


def _device(node: Node) -> tuple[str, int | None]:
    """Return sort and number of the device that a node's time is of."""
    number = node.metrics.get("device_id")
    known = isinstance(number, (str, int)) and str(number).isascii() and str(number).isdigit()
    sort = node.metrics.get("device_type")
    return (sort if isinstance(sort, str) else "device"), int(str(number)[:6]) if known else None


def _tracks(nodes: Sequence[Node], rank: int) -> tuple[list[int], pd.DataFrame]:
    """Return the track of each node, and the tracks: one a device, and one for the scopes."""
    known: dict[tuple[str, int | None], int] = {}
    places = [
        known.setdefault(("scopes", None) if node.time_ns is None else _device(node), len(known))
        for node in nodes
    ]
    labels = [sort if number is None else f"{sort} {number}" for sort, number in known]
    tracks = schema.TRACKS.frame(
        {
            "label": labels,
            "type": "other",
            "domain": "gpu",
            "process": None,
            "thread": None,
            "device": pd.array([number for _, number in known], dtype="Int32"),
            "rank": rank,
            "sort_index": list(range(len(labels))),
            "process_name": None,
        },
        len(labels),
    )
    return places, tracks


def _devices(tree: Tree) -> list[dict[str, Any]]:
    out = []
    for sort, numbered in tree.devices.items():
        for number, said in numbered.items():
            if str(number).isdigit():
                named = {_PROPERTIES.get(key, key): value for key, value in said.items()}
                out.append({"id": int(str(number)[:6]), "type": sort, **named})
    return out


def _accounting(tree: Tree, rows: int) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]``: nodes, and their own times in ns.

    ``span_ns`` is the sum of the own times of all rows; ``bookkeeping_ns`` the part that Proton spent for
    itself.
    """
    left_out = {"not_a_node": tree.not_nodes} if tree.not_nodes else {}
    return {
        "unit": "nodes",
        "in_file": len(tree.nodes) + tree.not_nodes,
        "read": len(tree.nodes),
        "repaired": tree.bad_times,
        "left_out": left_out,
        "unread": {},
        "bookkeeping": {"root": len(tree.nodes) - rows},
        "rows": {"spans": rows},
        "span_ns": sum(node.time_ns or 0 for node in tree.nodes),
        "bookkeeping_ns": sum(node.time_ns or 0 for node in tree.nodes if node.own_work),
    }
