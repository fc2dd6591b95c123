"""Trace events of VizTracer, Ray and Proton are what they are, and no operators of torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torchtrt_viz as tv

WORKERS = ("c801b55fa4baf7884f032ae9", "c801b55fd186f0782196066b")
NODE = "192.0.2.7"


def load(tmp_path: Path, document: Any) -> tv.Trace:
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps(document))
    loaded = tv.load(path)
    assert isinstance(loaded, tv.Trace)
    return loaded


def call(name: str, ts: float, dur: float, category: str, **more: Any) -> dict[str, Any]:
    return {"pid": 9, "tid": 9, "ts": ts, "ph": "X", "dur": dur, "name": name, "cat": category, **more}


def viztracer(category: str, **metadata: Any) -> dict[str, Any]:
    return {
        "traceEvents": [
            {"ph": "M", "pid": 9, "tid": 9, "name": "process_name", "args": {"name": "MainProcess"}},
            {"ph": "M", "pid": 9, "tid": 9, "name": "thread_name", "args": {"name": "MainThread"}},
            call("f (/a/b.py:6)", 100.5, 8.25, category, args={"func_args": {"n": "1"}, "return_value": "2"}),
            call("builtins.len", 101, 0.5, category),
            {"pid": 9, "tid": 9, "ts": 102, "ph": "i", "cat": "instant", "name": "mark", "s": "t"},
            {"pid": 9, "tid": 9, "ts": 103, "ph": "C", "name": "gc", "args": {"collected": 3}},
        ],
        "viztracer_metadata": {"version": "1.1.1", "overflow": False, **metadata},
        "file_info": {"files": {"/a/b.py": ["secret = 1", 1]}, "functions": {}},
    }


def test_calls_of_viztracer_are_python_frames(tmp_path: Path) -> None:
    for category in ("FEE", "fee"):  # before and since version 1.0
        trace = load(tmp_path, viztracer(category))
        assert trace.spans[["name", "kind", "domain", "start_ns", "dur_ns", "depth"]].values.tolist() == [
            ["f (/a/b.py:6)", "python", "host", 100_500, 8_250, 0],
            ["builtins.len", "python", "host", 101_000, 500, 1],
        ]
        assert trace.args[0]["func_args"] == {"n": "1"}
        assert trace.instants["name"].tolist() == ["mark"]
        assert trace.counters["value"].tolist() == [3]
        assert trace.meta["versions"]["viztracer"] == "1.1.1"
        assert trace.meta["warnings"] == []
        assert trace.operators().empty
        assert trace.kernels().empty
        assert "secret" not in repr(trace.meta)
        assert trace.meta["accounting"]["keys_passed_over"]["file_info"] > 20


def test_viztracer_names_its_base_and_what_it_lost(tmp_path: Path) -> None:
    base = 1_767_325_615_896_926_966
    trace = load(tmp_path, viztracer("fee", baseTimeNanoseconds=base, overflow=True))
    assert trace.meta["base_ns"] == base
    assert [w.code for w in trace.meta["warnings"]] == ["diagnostic"]
    hostile = viztracer("fee", baseTimeNanoseconds={"a": 1}, overflow=[1])
    hostile["viztracer_metadata"]["version"] = ["<b>"]
    assert load(tmp_path, hostile).meta["viztracer"] == {}


def ray(pid: Any, tids: tuple[Any, Any]) -> list[dict[str, Any]]:
    def event(category: str, name: str, tid: Any, ts: float, dur: float) -> dict[str, Any]:
        color = {"cname": "generic_work", "args": {"name": name, "task_id": "f4"}}
        return {
            "cat": category,
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": ts,
            "dur": dur,
            "ph": "X",
        } | color

    at = 1_796_135_825_000_000.0
    return [
        event("task::A.m", "m", tids[0], at, 12_000.25),
        event("task:execute", "task:execute", tids[0], at + 100, 10_000),
        event("task::f", "__main__.f", tids[1], at + 50, 300),
    ]


def check(trace: tv.Trace) -> None:
    assert trace.spans["name"].tolist() == ["m", "task:execute", "__main__.f"]
    assert set(trace.spans["kind"]) == {"annotation"}
    assert set(trace.spans["domain"]) == {"host"}
    assert trace.spans["depth"].tolist() == [0, 1, 0]
    assert trace.spans["dur_ns"].tolist() == [12_000_250, 10_000_000, 300_000]
    assert trace.tracks["process"].tolist() == [f"worker:{worker}" for worker in WORKERS]
    assert trace.tracks["process_name"].tolist() == [f"Node {NODE}"] * 2
    assert trace.tracks["label"].tolist() == ["worker c801b55fa", "worker c801b55fd"]  # what tells them apart
    assert trace.meta["warnings"] == []
    assert trace.meta["base_ns"] == 0
    assert trace.operators().empty


def test_a_worker_of_ray_is_a_process(tmp_path: Path) -> None:
    check(load(tmp_path, ray(NODE, (f"worker:{WORKERS[0]}", f"worker:{WORKERS[1]}"))))


def test_the_dashboard_of_ray_names_numbers(tmp_path: Path) -> None:
    names = [
        {"ph": "M", "pid": 0, "tid": None, "name": "process_name", "args": {"name": f"Node {NODE}"}},
        *(
            {"ph": "M", "pid": 0, "tid": at, "name": "thread_name", "args": {"name": f"worker:{worker}"}}
            for at, worker in enumerate(WORKERS)
        ),
    ]
    check(load(tmp_path, [*ray(0, (0, 1)), *names]))


def proton(name: str, category: str, ts: float, dur: float, tid: Any) -> dict[str, Any]:
    stack = {"call_stack": ["ROOT", name]}
    return {"name": name, "cat": category, "ph": "X", "ts": ts, "dur": dur, "tid": tid, "args": stack}


def test_proton_writes_a_document_a_stream(tmp_path: Path) -> None:
    """Until 2025: streams are numbers, one JSON object a line."""
    path = tmp_path / "proton.chrome_trace"
    documents = [
        {"displayTimeUnit": "us", "traceEvents": [proton("matmul", "kernel", 1.5, 2.25, 7)]},
        {"displayTimeUnit": "us", "traceEvents": [proton("add", "kernel", 4.5, 1.25, 8)]},
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    trace = tv.load(path)
    found = trace.spans[["name", "kind", "domain", "stream", "start_ns", "dur_ns"]].values.tolist()
    assert found == [["matmul", "kernel", "gpu", "7", 1500, 2250], ["add", "kernel", "gpu", "8", 4500, 1250]]
    assert trace.kernels()["total_ns"].tolist() == [2250, 1250]


def test_proton_writes_threads_and_graphs(tmp_path: Path) -> None:
    """Since 2026: scopes of threads, scopes made anew for the kernels of graphs, and flows between them."""
    flow = {"name": "launch->kernel", "cat": "flow", "bp": "e", "id": 0}
    scope = {"name": "layer", "cat": "scope", "tid": "Graph: Stream 3", "args": {}}
    events = [
        proton("forward", "scope", 0, 5, "cpu thread 1"),
        {**scope, "ph": "B", "ts": 7},
        {**scope, "ph": "E", "ts": 9},
        proton("matmul", "kernel", 7, 2, "Stream: 3"),
        {**flow, "ph": "s", "ts": 1, "tid": "cpu thread 1"},
        {**flow, "ph": "f", "ts": 7, "tid": "Stream: 3"},
    ]
    trace = load(tmp_path, {"displayTimeUnit": "us", "traceEvents": events})
    found = trace.spans.set_index("name")[["kind", "domain", "timing"]].astype(str)
    assert found.loc["forward"].tolist() == ["annotation", "host", "measured"]
    assert found.loc["layer"].tolist() == ["annotation", "gpu", "modeled"]
    assert found.loc["matmul"].tolist() == ["kernel", "gpu", "measured"]
    kernels = trace.kernels()
    assert kernels["total_ns"].tolist() == [2000]
    assert kernels["launch_rows"].tolist() == [1]
    assert trace.meta["producers"]["rows"] == {"proton": 3}
    assert trace.meta["warnings"] == []


def test_frames_of_python_in_traces_of_xla(tmp_path: Path) -> None:
    names = [{"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}}]
    events = [
        {"ph": "X", "pid": 701, "tid": 5, "ts": 1, "dur": 9, "name": "$model.py:12 f"},
        {"ph": "X", "pid": 701, "tid": 5, "ts": 2, "dur": 1, "name": "$<unknown> __exit__"},
        {"ph": "X", "pid": 701, "tid": 5, "ts": 4, "dur": 1, "name": "PjitFunction(f)"},
    ]
    trace = load(tmp_path, {"displayTimeUnit": "ns", "traceEvents": [*names, *events]})
    assert trace.spans["kind"].tolist() == ["python", "python", "other"]
