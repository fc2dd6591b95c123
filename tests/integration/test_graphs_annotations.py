"""What torch writes at the kernels of graphs: ids of nodes, and the annotations of their capture.

No GPU is at hand: the events are made up in Kineto's schema, and torch's own code writes the annotations into
them (``torch.cuda._annotate_cuda_graph_trace``, of torch 2.13).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from graph_traces import Launch, capture, model, replay, write_pair
from rank_traces import write

import torchtrt_viz as tv
from torchtrt_viz.trace import Trace

NODE = 5 << 32


def annotated(annotations: dict[int, list[Any]], **options: Any) -> bytes:
    """A replay of the model with annotations, as torch writes it."""
    script = pytest.importorskip("torch.cuda._annotate_cuda_graph_trace")
    launches = [Launch(tuple(model()), "") for _ in range(2)]
    trace = json.loads(replay(launches, vendor="cuda", nodes=True, **options))
    count = script.annotate_trace(trace, {NODE + number: said for number, said in annotations.items()})
    assert count == 2 * len(annotations)
    return json.dumps(trace).encode()


def load(path: Path, **options: Any) -> Trace:
    trace = tv.load(path, **options)
    assert isinstance(trace, Trace)
    return trace


def test_scopes_that_torch_annotated_stand_above_their_kernels(tmp_path: Path):
    said = {number: [{"str": "attention" if number in (2, 7, 12) else "rest"}] for number in range(15)}
    trace = load(write(tmp_path / "trace.json", annotated(said)))
    table = trace.graphs()
    assert table[["kernels", "exact", "none"]].to_numpy().tolist() == [[15, 15, 0]] * 2
    assert table["graph"].isna().all()
    scopes = trace.operators(kinds=("annotation",)).set_index("name")
    assert scopes.loc["attention", ["calls", "graph_calls", "device_self_ns"]].tolist() == [0, 6, 30_000]
    # two kernels before the first, four between, two after: what follows each other is one scope
    assert scopes.loc["rest", ["graph_calls", "device_self_ns"]].tolist() == [8, 120_000]
    assert trace.operators().attrs["device_unexplained_pct"] == 100.0  # a scope is no operator


def test_a_modules_path_is_the_module_of_its_kernels(tmp_path: Path):
    said = {number: [{"module_fqn": f"layers.{number // 5}.mlp", "shape": "x"}] for number in range(15)}
    trace = load(write(tmp_path / "trace.json", annotated(said)))
    table = trace.kernels(by=("module", "match"))
    attention = table[table["name"] == "attention"].sort_values("module")
    assert attention["module"].tolist() == ["layers.0.mlp", "layers.1.mlp", "layers.2.mlp"]
    assert set(table["match"]) == {"exact"}
    stacks = tv.analysis.folded_stacks(trace, value="gpu").set_index("stack")["self_ns"]
    assert stacks["cudaGraphLaunch;layers.1.mlp"] == 2 * 5 * 5_000


def test_kernels_without_an_annotation_are_counted(tmp_path: Path):
    trace = load(
        write(tmp_path / "trace.json", annotated({0: ["first"], 1: [{"name": "second", "stream": 60}]}))
    )
    table = trace.graphs()
    assert table[["exact", "none"]].to_numpy().tolist() == [[2, 13]] * 2
    assert table["note"].iloc[0] == "13 pieces of work in no annotated scope"
    names = set(trace.operators(kinds=("annotation",))["name"])
    assert names == {"first", "second"}


def test_ids_of_nodes_alone_recover_nothing_and_say_so(tmp_path: Path):
    text = replay([Launch(tuple(model()))], vendor="cuda", nodes=True)
    trace = load(write(tmp_path / "trace.json", text))
    assert trace.graphs()["none"].tolist() == [15]
    assert not trace.spans["timing"].eq("modeled").any()


def test_a_capture_goes_before_annotations(tmp_path: Path):
    said = {number: [{"str": "scope"}] for number in range(15)}
    recording = capture([model()], vendor="cuda", named=False, said=None)
    folder = write_pair(tmp_path, annotated(said), {"bs_32_rank0.json.gz": recording})
    trace = load(folder)
    assert trace.graphs()["ordered"].tolist() == [15, 15]
    assert trace.operators().attrs["device_unexplained_pct"] == 0.0


def test_work_that_torchs_monitor_exports_keeps_its_ids(tmp_path: Path):
    """The fields that torch's own exporter of CUPTI records gives a kernel of a graph."""
    monitor = pytest.importorskip("torch.profiler._cupti_monitor_trace")
    args: dict[str, Any] = {"device": 0, "context": 1, "stream": 7, "correlation": 1}
    args |= {"graph id": 5, "graph node id": NODE + 3}
    monitor._annotation_to_args(args, json.dumps({"str": "scope", "rank": 3}))
    trace = json.loads(replay([Launch(tuple(model()), "")], vendor="cuda", nodes=True))
    kernel = next(event for event in trace["traceEvents"] if event["cat"] == "kernel")
    kernel["args"].update(args, correlation=kernel["args"]["correlation"])
    loaded = load(write(tmp_path / "trace.json", json.dumps(trace).encode()))
    assert loaded.graphs()["exact"].tolist() == [1]
    assert loaded.operators(kinds=("annotation",))["name"].tolist()[-1] == "scope"
