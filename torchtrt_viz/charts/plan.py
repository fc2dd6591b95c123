"""The graph of an engine: layers as nodes, tensors as edges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.analysis.engine.plan import plan_graph
from torchtrt_viz.charts.chart import Chart, Edge, Graph, Node, Series
from torchtrt_viz.charts.names import engine_label, format_label, layer_label, node_label
from torchtrt_viz.charts.written import byte_size, duration, shortened

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["folds_of", "plan"]

_ROLES = {
    "compute": "0",
    "reformat": "1",
    "shape": "2",
    "sync": "3",
    "region": "5",
    "constant": "6",
}
_OPEN_ROWS = 30
"""A drawing of so many rows is not folded."""
_SMALL = 1.0
"""Rows of layers below this share are folded, percent."""
_LONGEST_NAME, _LONGEST_KIND, _LONGEST_TENSOR = 27, 30, 36
_NONE = "the trace describes no engine: layer information (trtexec --exportLayerInfo, TREX's graph.json) does"


def plan(trace: TraceData, *, engine: str | None = None) -> Chart:
    """Draw the graph of an engine; of several the one whose layers took longest, unless it is named."""
    infos = engine_infos(trace)
    if engine is None and infos:
        timed = layers(trace).groupby("engine")["total_ns"].sum()
        engine = max(infos, key=lambda name: (float(timed.get(name, 0) or 0), -list(infos).index(name)))
    if engine is None:
        return Chart("plan", "Engine graph", "", None, pd.DataFrame(), "layers", _NONE)
    graph = plan_graph(trace, engine=engine)
    side = "host" if infos[engine].domain == "host" else "gpu"
    roles = [role for role in _ROLES if (graph.nodes["role"] == role).any()]
    nodes = tuple(_node(row, side) for row in graph.nodes.to_dict("records"))
    edges = tuple(_edge(row) for row in graph.edges.to_dict("records") if row["source"] >= 0)
    table = layers(trace, engine=engine, sort=None)
    count = int((graph.nodes["kind"] == "layer").sum())
    words = (
        f"{engine_label(engine)}: {count:,} layers in {max((n.rank for n in nodes), default=-1) + 1:,} rows."
    )
    most = graph.nodes[graph.nodes["pct"].notna()].sort_values("pct", ascending=False, kind="stable")
    if len(most):
        first = most.iloc[0]
        words += f" {layer_label(first['name'])} takes longest, {first['pct']:.1f} % of the timed layers."
    else:
        words += " Its layers are not timed."
    if not edges:
        words += " Which layer reads what another writes is not recorded."
    folds = folds_of(nodes)
    if folds:
        words += (
            f" Rows of small layers are folded; {len(infos):,} engines."
            if len(infos) > 1
            else (" Rows of small layers are folded.")
        )
    return Chart(
        "plan",
        "Engine graph",
        words,
        Graph(
            (
                *(Series(role, f"{side}{_ROLES[role]}") for role in roles),
                Series("input, output, unknown", "rest"),
            ),
            nodes,
            edges,
            folds,
        )
        if nodes
        else None,
        table,
        "layers",
        _NONE,
    )


def _node(row: dict[Any, Any], side: str) -> Node:
    def known(key: str) -> str | None:
        return None if pd.isna(row[key]) else str(row[key])

    layer = row["kind"] == "layer"
    short = [known("precision"), None if pd.isna(row["mean_ns"]) else duration(row["mean_ns"])]
    if not pd.isna(row["pct"]):
        short.append(f"{row['pct']:.1f} %")
    kind = known("type") or ("" if layer else str(row["kind"]))
    says = [
        f"{row['kind']} {row['name']}",
        known("type"),
        known("role"),
        *short,
        known("tactic"),
        known("module"),
    ]
    return Node(
        shortened(node_label(row["name"]), _LONGEST_NAME),
        shortened(kind, _LONGEST_KIND),
        " · ".join(part for part in short if part),
        " · ".join(part for part in says if part),
        f"{side}{_ROLES[row['role']]}" if row["role"] in _ROLES else "rest",
        int(row["rank"]),
        float(row["x"]),
        None if pd.isna(row["pct"]) else float(row["pct"]),
        layer,
        str(row["name"]),
    )


def _edge(row: dict[Any, Any]) -> Edge:
    words = [str(row[key]) for key in ("shape", "dtype", "format") if not pd.isna(row[key])]
    size = [] if pd.isna(row["bytes"]) else [byte_size(row["bytes"])]
    about = " ".join(words[:2])
    if len(words) == 3:
        about += f" {format_label(words[2])}"
    return Edge(
        int(row["source"]),
        int(row["target"]),
        shortened(about, _LONGEST_TENSOR),
        " · ".join([f"tensor {row['tensor']}", *words, *size]),
        tuple(row["via"]),
        bool(row["back"]),
    )


def folds_of(nodes: tuple[Node, ...]) -> tuple[tuple[int, int], ...]:
    """Return the rows to fold: stretches of rows with small or untimed layers only, none too long to read.

    First and last row stay open, and short drawings are not folded at all.
    """
    rows = max((node.rank for node in nodes), default=-1) + 1
    if rows <= _OPEN_ROWS:
        return ()
    small = [True] * rows
    for node in nodes:
        if node.pct is not None and node.pct >= _SMALL:
            small[node.rank] = False
    longest = max(4, math.ceil(rows / _OPEN_ROWS))
    folds, begin = [], 1
    for row in range(1, rows):
        open_row = row == rows - 1 or not small[row]
        if open_row or row - begin == longest:
            if row - begin >= 3:
                folds.append((begin, row - 1))
            begin = row + 1 if open_row else row
    return tuple(folds)
