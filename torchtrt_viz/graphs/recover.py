"""Recovered operators as rows of a trace: see `torchtrt_viz.model.graph_rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.masks import ints
from torchtrt_viz.graphs.choose import Plan
from torchtrt_viz.graphs.launched import GraphLaunch
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import Args
from torchtrt_viz.model.graph_rows import LAUNCH, MATCHES, kernel_flow
from torchtrt_viz.model.merge import stack
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["add_recovered"]

Ints = NDArray[np.int64]
_NAME = "graph"


@dataclass(frozen=True)
class _Template:
    """The rows of one launch on one of its streams: a root, then the nodes with work there.

    Attributes
    ----------
    node
        Node of each row after the root.
    parent
        Row above each of them, counted from the root, which is 0.
    depth
        How deep each row lies.
    below, begin
        The pieces of work at or below each row, one row's after the other's, and where each row's begin.
    piece, row
        The pieces with an owner, and the row that each is the own work of.
    """

    node: list[int]
    parent: list[int]
    depth: list[int]
    below: Ints
    begin: Ints
    piece: Ints
    row: Ints


class _Rows:
    """Columns of the rows being made."""

    def __init__(self) -> None:
        self.name: list[str] = []
        self.kind: list[str] = []
        self.columns: dict[str, list[Any]] = {
            key: [] for key in ("track", "start_ns", "dur_ns", "self_ns", "depth", "parent", "external_id")
        }
        self.details: list[dict[str, Any]] = []
        self.detail_of: list[int] = []
        self.flows: dict[str, list[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self.name)


def add_recovered(trace: TraceData, launched: Sequence[GraphLaunch], plans: Sequence[Plan]) -> TraceData:
    """Return the trace with rows for what was recovered; the trace itself where that is nothing."""
    spans = trace.spans
    start = ints(spans["start_ns"])
    end = start + spans["dur_ns"].to_numpy()
    track = spans["track"].to_numpy()
    lanes: dict[int, int] = {}
    rows = _Rows()
    next_id = int(filled(spans["external_id"]).max(initial=0)) + 1
    templates: dict[tuple[Any, ...], list[_Template]] = {}
    details: dict[tuple[int, int], int] = {}
    for number, (launch, plan) in enumerate(zip(launched, plans, strict=True)):
        lane_of = track[launch.pieces]
        key = (id(plan), lane_of.tobytes())
        if key not in templates:
            templates[key] = [
                _template(plan, np.flatnonzero(lane_of == lane)) for lane in dict.fromkeys(lane_of)
            ]
        ids: dict[int, int] = {}
        root_details = len(rows.details)
        rows.details.append(_about(launch, plan, number))
        for lane, template in zip(dict.fromkeys(lane_of.tolist()), templates[key], strict=True):
            base = len(spans) + len(rows)
            lanes.setdefault(lane, len(trace.tracks) + len(lanes))
            mine_start, mine_end = start[launch.pieces], end[launch.pieces]
            first = np.minimum.reduceat(mine_start[template.below], template.begin)
            last = np.maximum.reduceat(mine_end[template.below], template.begin)
            count = len(template.begin)
            own = np.zeros(count, np.int64)
            np.add.at(own, template.row, (mine_end - mine_start)[template.piece])
            rows.name += [_root_name(plan), *(plan.nodes[node].name for node in template.node)]
            rows.kind += ["annotation", *(plan.nodes[node].kind for node in template.node)]
            columns = rows.columns
            columns["track"] += [lanes[lane]] * count
            columns["start_ns"] += first.tolist()
            columns["dur_ns"] += (last - first).tolist()
            columns["self_ns"] += own.tolist()
            columns["depth"] += template.depth
            columns["parent"] += [-1, *(base + above for above in template.parent[1:])]
            for node in (-1, *template.node):
                if node not in ids:
                    ids[node] = next_id
                    next_id += 1
                columns["external_id"].append(ids[node])
            rows.detail_of.append(root_details)
            for node in template.node:
                place = (id(plan), node)
                if place not in details:
                    details[place] = len(rows.details)
                    rows.details.append(_of_node(plan, node))
                rows.detail_of.append(details[place])
            rows.flows.setdefault(LAUNCH, []).append((launch.row, base))
            for match, name in enumerate(MATCHES):
                mine = plan.match[template.piece] == match
                if mine.any():
                    links = zip(
                        (base + template.row[mine]).tolist(),
                        launch.pieces[template.piece[mine]].tolist(),
                        strict=True,
                    )
                    rows.flows.setdefault(kernel_flow(name), []).extend(links)
    return _extended(trace, rows, lanes) if len(rows) else trace


def _root_name(plan: Plan) -> str:
    graph = plan.graph
    if graph is None:
        return f"{_NAME}: no operators recovered"
    several = f" {graph.number + 1} of {graph.of}" if graph.of > 1 else ""
    return f"{_NAME} {graph.label or graph.source.rpartition('/')[2]}{several} (recovered)"


def _about(launch: GraphLaunch, plan: Plan, number: int) -> dict[str, Any]:
    """Return the details of a root: what `graphs()` says of the launch."""
    out: dict[str, Any] = {"recovered": _origin(plan), "launch": number, "ambiguous": plan.ambiguous}
    graph = plan.graph
    if graph is not None:
        out |= {"graph": _root_name(plan).removesuffix(" (recovered)").removeprefix(f"{_NAME} ")}
        out |= {"batch": graph.batch, "mode": graph.mode, "capture": graph.source}
        out |= {"graph_number": graph.number, "graph_of": graph.of}
    if launch.batch is not None:
        out["step_batch"] = launch.batch
    if plan.note:
        out["note"] = plan.note
    return {key: value for key, value in out.items() if value is not None}


def _of_node(plan: Plan, node: int) -> dict[str, Any]:
    out = {"recovered": _origin(plan), **plan.nodes[node].details}
    return out if plan.graph is None else {**out, "capture": plan.graph.source}


def _origin(plan: Plan) -> str:
    if plan.graph is not None:
        return "from the capture of the graph"
    return "from torch's annotations of graph nodes" if plan.nodes else "nothing"


def _template(plan: Plan, pieces: Ints) -> _Template:
    """Lay out what has work among these pieces."""
    own: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for piece in pieces.tolist():
        node = int(plan.owner[piece])
        if node < 0 or plan.match[piece] < 0:
            continue
        own.setdefault(node, []).append(piece)
        while node >= 0:
            below.setdefault(node, []).append(piece)
            node = plan.nodes[node].parent
    place = {-1: 0}
    parent, depth, order = [-1], [0], []
    for node in sorted(below):  # nodes stand in the order in which they began: parents come first
        above = place[plan.nodes[node].parent]
        place[node] = len(parent)
        order.append(node)
        parent.append(above)
        depth.append(depth[above] + 1)
    lists = [pieces.tolist(), *(below[node] for node in order)]
    return _Template(
        order,
        parent,
        depth,
        np.array([piece for found in lists for piece in found], np.int64),
        np.cumsum([0, *map(len, lists[:-1])]),
        np.array([piece for found in own.values() for piece in found], np.int64),
        np.array([place[node] for node, found in own.items() for _ in found], np.int64),
    )


class _WithRecovered:
    """Details of the recorded spans, as they were, and of the recovered ones after them."""

    def __init__(self, before: Args, details: list[dict[str, Any]], detail_of: Ints) -> None:
        self._before = before
        self._details = details
        self._detail_of = detail_of

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        out: list[dict[str, Any]] = [{} for _ in rows]
        recorded = np.flatnonzero(rows < len(self._before))
        for place, found in zip(recorded.tolist(), self._before.read(rows[recorded]), strict=True):
            out[place] = found
        for place in np.flatnonzero(rows >= len(self._before)).tolist():
            out[place] = dict(self._details[self._detail_of[rows[place] - len(self._before)]])
        return out

    def values(self, rows: np.ndarray, key: str) -> tuple[np.ndarray, list[Any]]:
        """Return one argument of many rows, as `Args.values` does."""
        codes = np.full(len(rows), -1, np.int64)
        recorded = rows < len(self._before)
        found, values = self._before.values(rows[recorded], key)
        codes[recorded] = found
        values = list(values)
        table = np.full(len(self._details) + 1, -1, np.int64)
        for number, details in enumerate(self._details):
            if key in details:
                table[number] = len(values)
                values.append(details[key])
        codes[~recorded] = table[self._detail_of[rows[~recorded] - len(self._before)]]
        return codes, values


def _extended(trace: TraceData, rows: _Rows, lanes: dict[int, int]) -> TraceData:
    count = len(rows)
    columns = {name: np.array(values, np.int64) for name, values in rows.columns.items()}
    columns["track"] = columns["track"].astype(np.int32)
    columns["depth"] = columns["depth"].astype(np.int32)
    rank = trace.meta["rank"]
    new = schema.SPANS.frame(
        {
            "name": pd.Categorical(rows.name),
            "kind": np.array([schema.KINDS.index(kind) for kind in rows.kind], np.int8),
            "domain": "gpu",
            "timing": "modeled",
            "rank": -1 if rank is None else int(rank),
            **columns,
        },
        count,
    )
    spans = stack([trace.spans[[name for name in schema.SPANS.stored if name in trace.spans]], new])
    made = [(name, source, target) for name, links in rows.flows.items() for source, target in links]
    flows = schema.FLOWS.frame(
        {
            "name": pd.Categorical([name for name, _, _ in made]),
            "source": np.array([source for _, source, _ in made], np.int64),
            "target": np.array([target for _, _, target in made], np.int64),
            "id": -1,
        },
        len(made),
    )
    return TraceData(
        spans=spans,
        tracks=_with_lanes(trace.tracks, lanes),
        instants=trace.instants,
        counters=trace.counters,
        flows=stack([trace.flows, flows]) if len(trace.flows) else flows,
        meta=trace.meta,
        args=_WithRecovered(trace.args, rows.details, np.array(rows.detail_of, np.int64)),
        instant_args=trace.instant_args,
    )


def _with_lanes(tracks: pd.DataFrame, lanes: dict[int, int]) -> pd.DataFrame:
    """Add a track below each stream that graphs ran on."""
    streams = tracks.iloc[list(lanes)].reset_index(drop=True)
    labels = [f"{label}: recovered" for label in streams["label"]]
    new = schema.TRACKS.frame(
        {
            **{name: streams[name].to_numpy(dtype=object) for name in ("process", "process_name")},
            **{name: filled(streams[name]) for name in ("device", "rank")},
            "sort_index": streams["sort_index"].to_numpy(),
            "label": labels,
            "type": "other",
            "domain": "gpu",
            "thread": [f"{thread} recovered" for thread in streams["thread"]],
        },
        len(streams),
    )
    return stack([tracks, new])
