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
    name, kind, detail
        Name and details of each row by their numbers in `_Rows`, and its kind.
    parent
        Row above each, counted from the root, which is 0 and has -1.
    depth
        How deep each row lies.
    call
        Number of what each row stands for within the launch: the same on every stream.
    below, begin
        The pieces of work at or below each row, one row's after the other's, and where each row's begin.
    piece, row, match
        The pieces with an owner, the row that each is the own work of, and how it was matched.
    """

    name: Ints
    kind: Ints
    detail: Ints
    parent: Ints
    depth: Ints
    call: Ints
    below: Ints
    begin: Ints
    piece: Ints
    row: Ints
    match: Ints


class _Rows:
    """Rows being made: whole columns, launch after launch; names and details are held once."""

    COLUMNS = ("name", "kind", "track", "start_ns", "dur_ns", "self_ns", "depth", "parent", "external_id")

    def __init__(self) -> None:
        self.columns: dict[str, list[Ints]] = {name: [] for name in (*self.COLUMNS, "detail")}
        self.flows: dict[str, list[Ints]] = {}
        self.names: dict[str, int] = {}
        self.details: list[dict[str, Any]] = []
        self.count = 0

    def add(self, **columns: Ints) -> None:
        """Add rows."""
        for name, values in columns.items():
            self.columns[name].append(values)
        self.count += len(columns["name"])

    def link(self, name: str, source: Ints, target: Ints) -> None:
        """Add flows."""
        self.flows.setdefault(name, []).append(np.stack([source, target]))

    def name(self, text: str) -> int:
        """Return the number of a name."""
        return self.names.setdefault(text, len(self.names))

    def detail(self, details: dict[str, Any]) -> int:
        """Hold the details of rows; returns their number."""
        self.details.append(details)
        return len(self.details) - 1


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
    for number, (launch, plan) in enumerate(zip(launched, plans, strict=True)):
        lane_of = track[launch.pieces]
        streams = list(dict.fromkeys(lane_of.tolist()))
        key = (id(plan), lane_of.tobytes())
        if key not in templates:
            templates[key] = _templates(plan, [np.flatnonzero(lane_of == lane) for lane in streams], rows)
        begin, stop = start[launch.pieces], end[launch.pieces]
        about = rows.detail(_about(launch, plan, number))
        for lane, template in zip(streams, templates[key], strict=True):
            base = len(spans) + rows.count
            size = len(template.begin)
            first = np.minimum.reduceat(begin[template.below], template.begin)
            own = np.zeros(size, np.int64)
            np.add.at(own, template.row, (stop - begin)[template.piece])
            rows.add(
                name=template.name,
                kind=template.kind,
                track=np.full(size, lanes.setdefault(lane, len(trace.tracks) + len(lanes)), np.int64),
                start_ns=first,
                dur_ns=np.maximum.reduceat(stop[template.below], template.begin) - first,
                self_ns=own,
                depth=template.depth,
                parent=np.where(template.parent < 0, -1, base + template.parent),
                external_id=next_id + template.call,
                detail=np.where(template.detail < 0, about, template.detail),
            )
            rows.link(LAUNCH, np.array([launch.row]), np.array([base]))
            for match, name in enumerate(MATCHES):
                mine = template.match == match
                rows.link(kernel_flow(name), base + template.row[mine], launch.pieces[template.piece[mine]])
        next_id += 1 + max(int(template.call.max()) for template in templates[key])
    return _extended(trace, rows, lanes) if rows.count else trace


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


def _templates(plan: Plan, streams: Sequence[Ints], rows: _Rows) -> list[_Template]:
    """Lay out what has work, stream by stream."""
    calls: dict[int, int] = {-1: 0}
    details: dict[int, int] = {}
    return [_template(plan, pieces, rows, calls, details) for pieces in streams]


def _template(
    plan: Plan, pieces: Ints, rows: _Rows, calls: dict[int, int], details: dict[int, int]
) -> _Template:
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
    parent, depth = [-1], [0]
    order = sorted(below)  # nodes stand in the order in which they began: parents come first
    for node in order:
        above = place[plan.nodes[node].parent]
        place[node] = len(parent)
        parent.append(above)
        depth.append(depth[above] + 1)
        calls.setdefault(node, len(calls))
        if node not in details:
            details[node] = rows.detail(_of_node(plan, node))
    lists = [pieces.tolist(), *(below[node] for node in order)]
    nodes = [plan.nodes[node] for node in order]
    piece = np.array([piece for found in own.values() for piece in found], np.int64)
    return _Template(
        name=np.array([rows.name(_root_name(plan)), *(rows.name(node.name) for node in nodes)], np.int64),
        kind=np.array([schema.KINDS.index(kind) for kind in ("annotation", *(node.kind for node in nodes))]),
        detail=np.array([-1, *(details[node] for node in order)], np.int64),
        parent=np.array(parent, np.int64),
        depth=np.array(depth, np.int64),
        call=np.array([0, *(calls[node] for node in order)], np.int64),
        below=np.array([piece for found in lists for piece in found], np.int64),
        begin=np.cumsum([0, *map(len, lists[:-1])]),
        piece=piece,
        row=np.array([place[node] for node, found in own.items() for _ in found], np.int64),
        match=plan.match[piece].astype(np.int64),
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
    columns = {name: np.concatenate(values) for name, values in rows.columns.items()}
    detail = columns.pop("detail")
    names = pd.Index(list(rows.names), dtype="str")
    rank = trace.meta["rank"]
    new = schema.SPANS.frame(
        {
            **columns,
            "name": pd.Categorical.from_codes(columns["name"].tolist(), categories=names),
            "kind": columns["kind"].astype(np.int8),
            "track": columns["track"].astype(np.int32),
            "depth": columns["depth"].astype(np.int32),
            "domain": "gpu",
            "timing": "modeled",
            "rank": -1 if rank is None else int(rank),
        },
        rows.count,
    )
    spans = stack([trace.spans[[name for name in schema.SPANS.stored if name in trace.spans]], new])
    links = {name: np.concatenate(found, axis=1) for name, found in rows.flows.items()}
    ends = np.concatenate(list(links.values()), axis=1)
    flows = schema.FLOWS.frame(
        {
            "name": pd.Categorical.from_codes(
                np.repeat(np.arange(len(links)), [found.shape[1] for found in links.values()]).tolist(),
                categories=pd.Index(list(links), dtype="str"),
            ),
            "source": ends[0],
            "target": ends[1],
            "id": -1,
        },
        ends.shape[1],
    )
    return TraceData(
        spans=spans,
        tracks=_with_lanes(trace.tracks, lanes),
        instants=trace.instants,
        counters=trace.counters,
        flows=stack([trace.flows, flows]) if len(trace.flows) else flows,
        meta=trace.meta,
        args=_WithRecovered(trace.args, rows.details, detail),
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
