"""What a trace must hold whose graphs were joined with made-up captures of known owners."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from graph_traces import Call, Launch, capture, replay, write_pair

import torchtrt_viz as tv
from torchtrt_viz.analysis.core.links import operator_rows
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.model.graph_rows import MATCHES

CAPTURE = "graph_capture_rank_0.1773709742341309550.pt.trace.json.gz"


def load(folder: Path, **options: Any) -> tv.Trace:
    trace = tv.load(folder, **options)
    assert isinstance(trace, tv.Trace)
    return trace


def owners(trace: tv.Trace) -> pd.DataFrame:
    """Each piece of work of graphs: what it came from, and what was recovered of it."""
    found = recovered(trace)
    rows = np.flatnonzero(
        trace.spans["kind"].isin(["kernel", "memcpy", "memset"]) & trace.spans["domain"].eq("gpu")
    )
    out = []
    is_operator = operator_rows(trace) & trace.spans["timing"].eq("modeled").to_numpy()
    for row, args in zip(rows, trace.args.read(rows), strict=True):
        if args.get("truth", -1) < 0:
            continue
        owner = -1 if found is None else int(found.owner[row])
        while owner >= 0 and not is_operator[owner]:
            owner = int(trace.spans["parent"].iloc[owner])
        match = "none" if found is None or found.match[row] < 0 else MATCHES[found.match[row]]
        out.append(
            {
                "row": int(row),
                "truth": args["truth"],
                "replay": args["replay"],
                "match": match,
                "operator": None if owner < 0 else str(trace.spans["name"].iloc[owner]),
                **({} if owner < 0 else trace.args[owner]),
            }
        )
    return pd.DataFrame(out)


def check(trace: tv.Trace, calls: Sequence[Call]) -> pd.DataFrame:
    """Nothing that was recovered is wrong, and what was not is counted; returns what was found."""
    found = owners(trace)
    for row in found.to_dict("records"):
        call = calls[row["truth"]]
        if row["match"] == "none":
            assert pd.isna(row["operator"])
            continue
        assert row["operator"] == call.operator
        if row["match"] != "by_name":
            assert row["Input Dims"] == call.shape
            assert row["module"] == f"nn.Module: {call.module}"
            assert row["source"] == f"model.py({call.number}): forward"
        else:
            for key, true in (
                ("Input Dims", call.shape),
                ("module", f"nn.Module: {call.module}"),
                ("source", f"model.py({call.number}): forward"),
            ):
                assert (
                    pd.isna(row.get(key)) if not isinstance(row.get(key), (list, str)) else row[key] == true
                )
    table = trace.graphs()
    for match in (*MATCHES, "none"):
        assert int(table[match].sum()) == int((found["match"] == match).sum())
    conserved(trace)
    return found


def conserved(trace: tv.Trace) -> None:
    """Sums over what was recovered never exceed what was recorded, and host time has none of it."""
    spans = trace.spans
    measured = spans[spans["timing"] == "measured"]
    work = measured[measured["domain"].eq("gpu") & measured["kind"].isin(["kernel", "memcpy", "memset"])]
    gpu = int(work["dur_ns"].sum())
    table = trace.operators()
    assert int(table["device_self_ns"].sum()) + table.attrs["device_unexplained_ns"] == gpu
    host = measured[measured["domain"].eq("host") & measured["kind"].eq("operator")]
    assert int(table["calls"].sum()) == len(host)
    assert int(table["total_ns"].sum()) == int(host["dur_ns"].sum())  # nothing in these traces is nested
    launches = measured[measured["name"].astype(str).str.contains("GraphLaunch")]
    graphs = trace.graphs()
    assert int(graphs["host_ns"].sum()) == int(launches["dur_ns"].sum())
    assert int(graphs["gpu_ns"].sum()) <= gpu
    tree = tv.analysis.call_tree(trace, value="gpu")
    assert int(tree["self_ns"].sum()) == gpu
    assert int(tv.analysis.call_tree(trace)["self_ns"].sum()) <= int(
        measured[measured["domain"].eq("host")]["dur_ns"].sum()
    )
    made = spans[spans["timing"] == "modeled"]
    assert made["domain"].eq("gpu").all()
    assert int(made["self_ns"].sum()) <= gpu


def pair(
    folder: Path, graph: Sequence[Call], launches: Sequence[Launch] | None = None, **options: Any
) -> Path:
    launched = [Launch(tuple(graph))] if launches is None else launches
    return write_pair(folder, replay(launched), {CAPTURE: capture([graph], **options)})
