"""What torch itself wrote at the kernels of graphs: ids of graph nodes, and the annotations of their capture.

``torch.cuda.graph`` with annotations enabled notes which scope (``mark_kernels``) put each node into the
graph; an export with ``cuda_graph_annotations`` writes the scope's fields into the arguments of the replayed
kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.humanize import count
from torchtrt_viz.graphs.captured import Node
from torchtrt_viz.graphs.choose import EXACT, Plan
from torchtrt_viz.graphs.launched import GraphLaunch
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["annotated", "node_ids"]

Ints = NDArray[np.int64]

_NODE = "graph node id"
#: Fields that name a scope, best first: the module's path, the text that was given, a name.
_TITLES = ("module_fqn", "str", "name", "annotation")
#: What recorders write at device work themselves. Other fields are the annotation's.
_RECORDED = frozenset(
    (
        *(
            _NODE,
            "graph id",
            "External id",
            "correlation",
            "device",
            "context",
            "stream",
            "queued",
            "channel",
        ),
        *("kind", "grid", "block", "registers per thread", "shared memory", "warps per SM", "blocks per SM"),
        *(
            "est. achieved occupancy %",
            "bytes",
            "memory bandwidth (GB/s)",
            "copy kind",
            "src kind",
            "dst kind",
        ),
        *("flags", "value", "memory kind", "priority", "cbid", "cid", "Ev Idx", "Record function id"),
        *("fwd_thread_id", "Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size"),
        *("In split size", "Out split size", "Process Group Name", "Process Group Description", "Rank"),
        *("Process Group Ranks", "Seq", "Src Rank", "Dst Rank", "channel_type", "stream wait id", "wait_on"),
    )
)
_LOOKED_AT = 512


def node_ids(trace: TraceData, rows: Ints) -> Ints | None:
    """Return for every span the id of its graph node, -1 unknown; None where none of ``rows`` has one.

    A recorder gives all work of graphs one or none, so that a few rows tell.
    """
    some = rows[:: max(1, len(rows) // _LOOKED_AT)]
    if (trace.args.values(some, _NODE)[0] < 0).all():
        return None
    codes, values = trace.args.values(rows, _NODE)
    known = np.array([*(v if type(v) is int and 0 < v < 2**63 else -1 for v in values), -1], np.int64)
    found = known[codes]
    if not (found > 0).any():
        return None
    out = np.full(len(trace.spans), -1, np.int64)
    out[rows] = found
    return out


def annotated(trace: TraceData, launched: Sequence[GraphLaunch], node: Ints) -> list[Plan] | None:
    """Return what annotations say of each launch's work; None where no work has any.

    Work with the same annotation, node after node, is one scope.
    """
    rows = np.unique(np.concatenate([launch.pieces for launch in launched]))
    fields = _fields(trace, rows[node[rows] > 0])
    if not fields:
        return None
    out = []
    for launch in launched:
        scopes: list[list[dict[str, Any]]] = []
        owner = np.full(len(launch.pieces), -1, np.int64)
        before: tuple[str, str] | None = None
        for piece, row in enumerate(launch.pieces.tolist()):
            said = fields.get(row)
            title = None if said is None else _title(said)
            if said is not None:
                if title != before:
                    scopes.append([])
                scopes[-1].append(said)
                owner[piece] = len(scopes) - 1
            before = title
        match = np.where(owner >= 0, EXACT, -1).astype(np.int8)
        left = int((owner < 0).sum())
        note = f"{count(left, 'piece')} of work in no annotated scope" if left else ""
        out.append(Plan(None, tuple(map(_scope, scopes)), owner, match, 0, note))
    return out


def _fields(trace: TraceData, rows: Ints) -> dict[int, dict[str, Any]]:
    """Return the fields of annotations by row."""
    step = max(1, len(rows) // _LOOKED_AT)
    keys = dict.fromkeys(
        key for found in trace.args.read(rows[::step]) for key in found if key not in _RECORDED
    )
    if not any(title in keys for title in _TITLES):
        return {}
    out: dict[int, dict[str, Any]] = {}
    for key in keys:
        codes, values = trace.args.values(rows, key)
        for at in np.flatnonzero(codes >= 0).tolist():
            out.setdefault(int(rows[at]), {})[key] = values[codes[at]]
    return {row: said for row, said in out.items() if any(title in said for title in _TITLES)}


def _title(said: dict[str, Any]) -> tuple[str, str]:
    key = next(title for title in _TITLES if title in said)
    return key, str(said[key])


def _scope(said: Sequence[dict[str, Any]]) -> Node:
    """Return a scope with the fields that all its work has in common."""
    details = {
        key: value for key, value in said[0].items() if all(other.get(key) == value for other in said[1:])
    }
    if "module_fqn" in details:
        details.setdefault("module", str(details["module_fqn"]))
    return Node(_title(said[0])[1], "annotation", -1, details)
