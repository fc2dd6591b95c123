"""Profiles of ONNX Runtime: operators, runs, subgraphs, and the device work of their providers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from onnxruntime_profiles import device_event, node, session_event, stats, write_profile

import torchtrt_viz as tv

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
FLOAT = [{"float": [1, 8]}, {"int64": [2]}]


def load(tmp_path: Path, *events: str, **options: object) -> tv.Trace:
    trace = tv.load(write_profile(tmp_path / "onnxruntime_profile_1.json", events), **options)
    assert isinstance(trace, tv.Trace)
    found = trace.meta["accounting"]
    assert found["in_file"] == len(events) == found["read"] + sum(found["left_out"].values())
    return trace


def test_nodes_are_operators_and_runs_are_executions(tmp_path: Path) -> None:
    trace = load(
        tmp_path,
        session_event("model_loading_uri", 3, 500),
        session_event("session_initialization", 600, 2000),
        node("fc1", 3010, 20, "Gemm", CPU, FLOAT, args={"thread_scheduling_stats": stats(4)}),
        node("fc2", 3035, 5, "Gemm", CPU, FLOAT),
        session_event("SequentialExecutor::Execute", 3005, 40),
        session_event("model_run", 3000, 50),
        node("fc1", 4001, 7, "Gemm", CPU, FLOAT),
        session_event("model_run", 4000, 10),
    )
    kinds = trace.spans[["name", "kind"]].drop_duplicates().to_dict("records")
    assert {row["name"]: row["kind"] for row in kinds} == {
        "model_loading_uri": "annotation",
        "session_initialization": "annotation",
        "Gemm": "operator",
        "SequentialExecutor::Execute": "annotation",
        "model_run": "method",
    }
    table = trace.operators(by=["node", "provider", "shape", "dtype"])
    assert table[["name", "node", "calls", "total_ns"]].to_dict("records") == [
        {"name": "Gemm", "node": "fc1", "calls": 2, "total_ns": 27_000},
        {"name": "Gemm", "node": "fc2", "calls": 1, "total_ns": 5_000},
    ]
    assert set(table["provider"]) == {CPU}
    assert set(table["shape"]) == {"[[1,8],[2]]"}
    assert set(table["dtype"]) == {'["float","int64"]'}
    assert trace.spans["iteration"].tolist() == [pd.NA, pd.NA, 0, 0, 0, 0, 1, 1]
    assert tv.analysis.iterations(trace)["dur_ns"].tolist() == [50_000, 10_000]
    assert set(trace.spans["run_id"]) == {"session-4"}
    details = trace.args[2]
    assert (details["node"], details["op_type"], details["provider"]) == ("fc1", "Gemm", CPU)
    assert (details["Input Dims"], details["Input type"]) == ([[1, 8], [2]], ["float", "int64"])
    answers = trace.questions()
    assert answers["measured"].tolist()[:2] == ["yes", "yes"]
    assert trace.meta["onnxruntime"] == {
        "session": "session-4",
        "runs": 2,
        "nodes": 3,
        "providers": {CPU: 3},
        "device_events": {"joined": 0, "without_node": 0},
    }


def test_nodes_of_subgraphs_lie_inside_their_node_also_where_rounding_hides_it(tmp_path: Path) -> None:
    # the loop's real times: 10.9 to 20.8 µs; its last node's: 15.2 to 20.7. Cut: 10 + 9, and 15 + 5.
    trace = load(
        tmp_path,
        node("inner", 11, 3, "MatMul", CPU),
        node("last", 15, 5, "Tanh", CPU),
        node("loop", 10, 9, "Loop", CPU),
        node("after", 20, 4, "Relu", CPU),
        session_event("model_run", 9, 20),
    )
    assert trace.spans["parent"].tolist() == [2, 2, 4, 4, -1]
    assert trace.spans["dur_ns"].tolist() == [3000, 5000, 9000, 4000, 20_000]
    table = trace.operators().set_index("name")
    # each moment counts once: of the loop's 9 µs one is before each of its nodes
    assert table["self_ns"].to_dict() == {"MatMul": 3000, "Tanh": 5000, "Loop": 2000, "Relu": 4000}
    assert table["total_ns"].sum() > 20_000 > table["self_ns"].sum()
    assert not trace.meta["warnings"]


def test_what_overlaps_by_more_is_no_child(tmp_path: Path) -> None:
    trace = load(tmp_path, node("a", 0, 10, "Conv", CPU), node("b", 5, 10, "Conv", CPU))
    assert trace.spans["parent"].tolist() == [-1, -1]
    assert [warning.code for warning in trace.meta["warnings"]] == ["overlap"]


def test_device_work_is_joined_to_the_node_that_the_file_states(tmp_path: Path) -> None:
    grid = {"grid_x": "4", "grid_y": "2", "grid_z": "1", "block_x": "128", "block_y": "1", "block_z": "1"}
    trace = load(
        tmp_path,
        session_event("model_run", 0, 100),
        device_event("MemcpyHostToDevice", 3, 2, stream="7", parent_name="model_run", op_name=""),
        node("conv1", 10, 20, "Conv", CUDA),
        device_event(
            "gemm<float>", 40, 30, stream="7", parent_name="conv1_kernel_time", op_name="Conv", **grid
        ),
        device_event("relu", 71, 5, stream="8", parent_name="conv1_kernel_time", op_name="Conv"),
        node("conv2", 35, 20, "Conv", CUDA),
        device_event("gemm<float>", 80, 31, stream="7", parent_name="conv2_kernel_time", op_name="Conv"),
        device_event("stray", 120, 1, stream="7", parent_name="elsewhere_kernel_time", op_name="Conv"),
    )
    device = trace.spans[trace.spans["domain"] == "gpu"]
    assert device["stream"].tolist() == ["7", "7", "8", "7", "7"]
    assert device["kind"].tolist() == ["memcpy", "kernel", "kernel", "kernel", "kernel"]
    assert device["process"].unique().tolist() == ["4711"]
    table = trace.operators(by="node").set_index("node")
    assert table["device_total_ns"].to_dict() == {"conv1": 35_000, "conv2": 31_000}
    assert table["total_ns"].to_dict() == {"conv1": 20_000, "conv2": 20_000}
    assert trace.meta["onnxruntime"]["device_events"] == {"joined": 4, "without_node": 1}
    row = int(device.index[1])
    assert (trace.args[row]["grid"], trace.args[row]["block"]) == ([4, 2, 1], [128, 1, 1])
    kernels = trace.kernels(by="operator").set_index(["name", "operator"])["total_ns"]
    assert kernels["gemm<float>", "Conv"] == 61_000
    assert trace.operators().attrs["device_unexplained_ns"] == 3_000  # the copy of the run, and the stray


def test_versions_with_fences_say_the_operator_alone(tmp_path: Path) -> None:
    trace = load(
        tmp_path,
        node("", 96_802, 1, "Conv", what="fence_before"),
        device_event("implicit_gemm", 96_900, 4, stream=13, op_name="Conv"),
        node("", 96_807, 12_944, "Conv"),
        device_event("implicit_gemm", 109_000, 6, stream=13, op_name="Conv"),
        node("", 109_756, 1, "Conv", what="fence_after"),
        node("add", 109_800, 3, "Add"),
        device_event("implicit_gemm", 109_900, 7, stream=13, op_name="Conv"),
    )
    assert trace.spans["kind"].tolist() == [
        "other",
        "kernel",
        "operator",
        "kernel",
        "other",
        "operator",
        "kernel",
    ]
    table = trace.operators().set_index("name")
    assert table["calls"].to_dict() == {"Conv": 1, "Add": 1}
    assert table["device_total_ns"].to_dict() == {"Conv": 10_000, "Add": 0}
    assert trace.meta["onnxruntime"]["device_events"] == {"joined": 2, "without_node": 1}


def test_parts_of_the_graph_that_a_provider_compiled_are_delegates(tmp_path: Path) -> None:
    fused = "TRTKernel_graph_main_1_0"
    trace = load(
        tmp_path,
        node("copy", 2, 5, "MemcpyFromHost", TENSORRT),
        node(f"TensorrtExecutionProvider_{fused}", 10, 40, fused, TENSORRT),
        node("out", 60, 10, "Softmax", CPU),
        session_event("model_run", 0, 80),
    )
    delegates = trace.delegates()
    assert delegates[["delegate", "backend", "calls", "host_total_ns"]].to_dict("records") == [
        {"delegate": fused, "backend": TENSORRT, "calls": 1, "host_total_ns": 40_000}
    ]
    assert trace.operators()["name"].tolist() == ["Softmax", "MemcpyFromHost"]
    answers = trace.questions()
    assert fused in answers["answer"].iloc[0]
    assert answers["measured"].iloc[0] == "yes"
    assert "40" in answers["answer"].iloc[1]


@pytest.mark.parametrize(
    "value", [None, 5, -1e300, [], {}, "", "\ud800", ["\ud800"], "<img src=x onerror=alert(1)>", [[[]]]]
)
def test_any_argument_may_hold_anything(value: object, tmp_path: Path) -> None:
    keys = (
        "op_name",
        "provider",
        "input_type_shape",
        "thread_scheduling_stats",
        "stream",
        "parent_name",
        "grid_x",
    )
    args = dict.fromkeys(keys, value)
    trace = load(
        tmp_path,
        node("a", 0, 5, args=args),
        device_event("kernel", 8, 2, **args),
        session_event("model_run", 0, 9),
    )
    assert len(trace.spans) == 3
    assert len(trace.args.read(range(3))) == 3
    assert trace.operators(by=["shape", "dtype", "node", "provider", "op_type"])["calls"].sum() == 1
    trace.kernels(by="operator")
    trace.explain()


def test_a_profile_that_stops_in_an_event_keeps_those_before(tmp_path: Path) -> None:
    whole = [node("a", 0, 5, "Relu", CPU), session_event("model_run", 0, 9), node("b", 20, 5, "Relu", CPU)]
    path = write_profile(tmp_path / "p.json", whole)
    path.write_bytes(path.read_bytes()[:-40])
    trace = tv.load(path)
    assert trace.spans["name"].tolist() == ["Relu", "model_run"]
    assert "truncated" in {warning.code for warning in trace.meta["warnings"]}
    with pytest.raises(tv.TraceFormatError):
        tv.load(path, strict=True)


def test_events_of_other_writers_keep_their_names(tmp_path: Path) -> None:
    trace = tv.load(
        write_profile(tmp_path / "p.json", [node("a", 0, 5, "Relu").replace('"Node"', '"cpu_op"')])
    )
    assert trace.spans["name"].tolist() == ["a_kernel_time"]
    assert "onnxruntime" not in trace.meta
