"""The graph of an engine's plan, laid out for drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.core.tables import floats, integers, number_or_nan, text
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.analysis.engine.plan_layout import lay_out
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["PlanGraph", "plan_graph"]


@dataclass(frozen=True)
class PlanGraph:
    """Nodes and edges of a plan.

    Attributes
    ----------
    nodes : pandas.DataFrame
        ``node`` (number), ``kind`` (layer, input, output), ``name``, ``type``, ``role``, ``precision``,
        ``tactic``, ``module``, ``mean_ns`` and ``pct`` (NA: not timed), ``rank`` (row of the drawing, from
        the inputs down) and ``x`` (place in its row, in widths of a node; 0 is the drawing's middle).
    edges : pandas.DataFrame
        ``source``, ``target`` (numbers of nodes; source -1: the file does not say where the tensor comes
        from), ``tensor``, ``shape``, ``dtype``, ``format`` (missing: not recorded), ``bytes`` (NA: not
        known), ``back`` (True: leads upwards, as in loops), ``via`` (tuple: places that it passes in the rows
        between).
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame


def plan_graph(trace: TraceData, *, engine: str | None = None) -> PlanGraph:
    """Lay out the graph of an engine's layers: who reads what whom writes.

    Layers stand one row below the last of those that they read from; within rows they are ordered so that
    few edges cross. Nothing but the engine's description is needed.

    Parameters
    ----------
    engine
        Which engine; may be left out where the trace holds one.

    Returns
    -------
    PlanGraph

    Raises
    ------
    OptionError
        When the trace describes no engine, or several and none is named.

    Examples
    --------
    >>> engines = tv.load(samples / "trex")
    >>> graph = tv.analysis.plan_graph(engines, engine="region_000")
    >>> graph.nodes["kind"].unique().tolist()
    ['layer']
    """
    infos = engine_infos(trace)
    if engine is None and len(infos) == 1:
        engine = next(iter(infos))
    if engine not in infos:
        raise OptionError(
            "engine", engine, f"one of the trace's engines ({', '.join(infos) or 'it has none'})"
        )
    table = infos[engine].layers.reset_index(drop=True)
    timed = layers(trace, engine=engine, sort=None).head(len(table)).reset_index(drop=True)
    nodes, edges = _graph(table, infos[engine].bindings, timed)
    # the engine's own order is an order of execution: an edge against it closes a loop
    back = [0 <= target <= source for source, target, _ in edges]
    outputs = [number for number, node in enumerate(nodes) if node["kind"] == "output"]
    layout = lay_out(len(nodes), [(source, target, tensor.name) for source, target, tensor in edges], outputs)
    frame = pd.DataFrame(nodes)
    frame.insert(0, "node", np.arange(len(nodes)))
    return PlanGraph(
        frame.assign(
            mean_ns=floats(frame["mean_ns"].to_numpy(dtype=np.float64)),
            pct=floats(frame["pct"].to_numpy(dtype=np.float64)),
            rank=np.array(layout.rank, dtype=np.int64),
            x=np.array(layout.x, dtype=np.float64),
        ),
        pd.DataFrame(
            {
                "source": np.array([edge[0] for edge in edges], dtype=np.int64),
                "target": np.array([edge[1] for edge in edges], dtype=np.int64),
                "tensor": text([edge[2].name for edge in edges]),
                "shape": text([_shape(edge[2].shape) for edge in edges]),
                "dtype": text([edge[2].dtype for edge in edges]),
                "format": text([edge[2].format for edge in edges]),
                "bytes": integers(
                    [edge[2].bytes or 0 for edge in edges], [edge[2].bytes is not None for edge in edges]
                ),
                "back": np.array(back, dtype=bool),
                "via": pd.Series(layout.via, dtype=object).to_numpy(),
            }
        ),
    )


def _shape(shape: Any) -> str | None:
    return None if shape is None else "x".join(map(str, shape))


def _graph(
    table: pd.DataFrame, bindings: pd.DataFrame, timed: pd.DataFrame
) -> tuple[list[dict[str, Any]], list[Any]]:
    nodes: list[dict[str, Any]] = []

    def node(kind: str, name: object, at: int | None = None) -> int:
        def fact(column: str) -> Any:
            return None if at is None or pd.isna(table[column].iloc[at]) else str(table[column].iloc[at])

        nodes.append(
            {
                "kind": kind,
                "name": str(name),
                "type": fact("type"),
                "role": fact("role"),
                "precision": fact("precision"),
                "tactic": fact("tactic"),
                "module": fact("module"),
                "mean_ns": number_or_nan(timed["mean_ns"].iloc[at]) if at is not None else np.nan,
                "pct": number_or_nan(timed["pct"].iloc[at]) if at is not None else np.nan,
            }
        )
        return len(nodes) - 1

    writer: dict[str, int] = {}
    for name, direction in zip(bindings["name"], bindings["direction"].astype(object), strict=True):
        if direction == "input":
            writer[str(name)] = node("input", name)
    first = len(nodes)
    for at, name in enumerate(table["name"]):
        node("layer", name, at)
    edges: list[Any] = []
    # in the engine's order, so that of several writers of one tensor the latest before a reader counts
    for at, (inputs, outputs) in enumerate(zip(table["inputs"], table["outputs"], strict=True)):
        for tensor in inputs or ():
            edges.append((writer.get(tensor.name, -1), first + at, tensor))
        for tensor in outputs or ():
            writer[tensor.name] = first + at
    # what is written later than it is read closes a loop
    edges = [(writer.get(e[2].name, -1) if e[0] < 0 else e[0], e[1], e[2]) for e in edges]
    for name, direction in zip(bindings["name"], bindings["direction"].astype(object), strict=True):
        if direction == "output" and str(name) in writer:
            source = writer[str(name)]
            at = source - first
            outputs = table["outputs"].iloc[at] if at >= 0 else ()
            tensor = next((t for t in outputs or () if t.name == str(name)), None)
            if tensor is not None:
                edges.append((source, node("output", name), tensor))
    return nodes, edges
