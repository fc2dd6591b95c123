"""A real profile of ONNX Runtime: what a plain walk of its JSON says is what the tables say."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from shared_files import shared_file

import torchtrt_viz as tv


@pytest.fixture(scope="module")
def path() -> str:
    return str(shared_file("corpus/writers/onnxruntime_profile.json"))


def test_counts_and_times_are_those_of_the_file(path: str) -> None:
    with open(path) as file:
        events = json.load(file)
    nodes = [event for event in events if event["cat"] == "Node"]
    calls = Counter(event["args"]["op_name"] for event in nodes)
    times: Counter[str] = Counter()
    for event in nodes:
        times[event["args"]["op_name"]] += 1000 * event["dur"]
    trace = tv.load(path)
    table = trace.operators(by=["node", "provider"])
    assert dict(zip(table["name"], table["calls"], strict=True)) == calls
    assert dict(zip(table["name"], table["total_ns"], strict=True)) == times
    assert dict(zip(table["name"], table["node"], strict=True)) == {
        event["args"]["op_name"]: event["name"].removesuffix("_kernel_time") for event in nodes
    }
    assert set(table["provider"]) == {event["args"]["provider"] for event in nodes}
    runs = [1000 * event["dur"] for event in events if event["name"] == "model_run"]
    assert tv.analysis.iterations(trace)["dur_ns"].tolist() == runs
    assert int(trace.spans["dur_ns"].sum()) == sum(1000 * event["dur"] for event in events)
    assert trace.meta["accounting"]["in_file"] == trace.meta["accounting"]["read"] == len(events)
    # every node lies in the execution that lies in a run
    parents = trace.spans["parent"].to_numpy()
    nodes_at = trace.spans.index[trace.spans["kind"] == "operator"].to_numpy()
    assert set(trace.spans["name"].iloc[parents[parents[nodes_at]]]) == {"model_run"}


def test_every_view_takes_it(path: str) -> None:
    trace = tv.load(path)
    assert trace.questions()["measured"].tolist() == ["yes"] * 4 + ["partly"] * 2
    assert trace.operators(by="shape")["shape"].notna().all()
    summary = trace.summary().set_index("item")["value"]
    assert (summary["executions of methods"], summary["calls of operators"]) == (5, 15)
