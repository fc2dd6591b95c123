"""Replays of real engines with the recordings of their captures, against what the raw files say."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from plain_sums import excesses

import torchtrt_viz as tv
from torchtrt_viz.trace import Trace

#: Folder of the corpus -> kernels of graphs, launches, batch size, mode.
RUNS = {
    "vllm_decode_full": (421, 1, 32, "FULL"),
    "vllm_prefilldecode_piecewise": (361, 25, 8192, "PIECEWISE"),
}


def load(path: Path, **options: Any) -> Trace:
    trace = tv.load(path, **options)
    assert isinstance(trace, Trace)
    return trace


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return found


def files(folder: Path) -> tuple[Path, Path]:
    return folder / "graph_execution.json.gz", next((folder / "capture_traces").glob("*.json.gz"))


def ns(us: float) -> int:
    return round(us * 1000)


def raw_owners(folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each kernel of a graph and the innermost operator around its captured launch, from the raw events.

    The kernels of all graphs in the order of their starts are the launches that captures recorded, in theirs.
    """
    replay, capture = map(events, files(folder))
    launches = {e["args"]["correlation"]: e for e in replay if "runtime" in e.get("cat", "")}
    kernels = [
        e
        for e in replay
        if e.get("cat") == "kernel"
        and "GraphLaunch" in launches.get(e["args"]["correlation"], {"name": ""})["name"]
    ]
    kernels.sort(key=lambda e: float(e["ts"]))
    ran = {
        e["args"]["correlation"] for e in capture if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    }
    calls = [
        e
        for e in capture
        if "kernel" in e.get("args", {})
        and e["cat"] == "cuda_runtime"
        and e["args"]["correlation"] not in ran
    ]
    calls.sort(key=lambda e: float(e["ts"]))
    assert [e["name"] for e in kernels] == [e["args"]["kernel"] for e in calls]
    operators = [e for e in capture if e.get("cat") == "cpu_op"]
    out = []
    for kernel, call in zip(kernels, calls, strict=True):
        at = float(call["ts"])
        around = [
            e
            for e in operators
            if e["tid"] == call["tid"] and float(e["ts"]) <= at < float(e["ts"]) + float(e["dur"])
        ]
        out.append((kernel, max(around, key=lambda e: float(e["ts"]))))
    return out


@pytest.mark.parametrize("name", RUNS)
def test_every_kernel_of_a_graph_has_the_operator_of_its_capture(corpus: Path, name: str):
    folder = corpus / "graphs" / name
    kernels, launches, batch, mode = RUNS[name]
    trace = load(folder)
    table = trace.graphs()
    assert len(table) == launches
    assert int(table["kernels"].sum()) == int(table["exact"].sum()) == kernels
    assert set(table["batch"]) == {batch}
    assert set(table["mode"]) == {mode}
    assert trace.operators().attrs["device_unexplained_pct"] <= 0.1

    expected: dict[tuple[str, str], int] = defaultdict(int)
    for kernel, operator in raw_owners(folder):
        shape = json.dumps(operator["args"]["Input Dims"], separators=(",", ":"))
        expected[operator["name"], shape] += ns(float(kernel["dur"]))
    found = trace.operators(by="shape")
    found = found[found["graph_calls"] > 0]
    told = {(row["name"], row["shape"]): row["device_graph_ns"] for row in found.to_dict("records")}
    assert {key: value for key, value in told.items() if value} == dict(expected)
    assert found["shape"].notna().all()


@pytest.mark.parametrize("name", RUNS)
def test_sums_stay_within_what_was_recorded(corpus: Path, name: str):
    folder = corpus / "graphs" / name
    raw = events(files(folder)[0])
    work = sum(ns(float(e["dur"])) for e in raw if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))
    calls = [e for e in raw if e.get("cat") == "cuda_runtime" and "GraphLaunch" in e["name"]]
    joined, alone = load(folder), load(folder, graphs=False)
    assert list(excesses(joined)) == []
    table = joined.operators()
    assert int(table["device_self_ns"].sum()) + table.attrs["device_unexplained_ns"] == work
    assert int(tv.analysis.call_tree(joined, value="gpu")["self_ns"].sum()) == work
    assert int(joined.graphs()["host_ns"].sum()) == sum(ns(float(e["dur"])) for e in calls)
    host = ["name", "calls", "total_ns", "self_ns", "mean_ns", "min_ns", "max_ns"]
    on_host = table[table["calls"] > 0].sort_values("name")[host].reset_index(drop=True)
    before = alone.operators().sort_values("name")[host].reset_index(drop=True)
    assert on_host.to_dict("list") == before.to_dict("list")  # joining graphs changes no host time
    for frame in ("host_gpu", "kernels"):
        assert getattr(joined, frame)().to_dict("list") == getattr(alone, frame)().to_dict("list")
    assert joined.meta.get("accounting") == alone.meta.get("accounting")


def test_findings_on_a_decoding_step_name_the_operator_that_leads(corpus: Path):
    trace = load(corpus / "graphs" / "vllm_decode_full")
    found = trace.explain()["finding"].iloc[0]
    assert "vllm::moe_forward takes 7.17 ms of 10.7 ms of device work (66.9 %)" in found
    assert "421 of 421 kernels in 1 graph launch have their operator back" in found


def test_the_capture_of_another_batch_size_is_refused(corpus: Path, tmp_path: Path):
    decode, _ = files(corpus / "graphs" / "vllm_decode_full")
    _, other = files(corpus / "graphs" / "vllm_prefilldecode_piecewise")
    trace = load(decode, graphs=other.parent)
    assert trace.graphs()["none"].tolist() == [421]
    assert "of batch size 8192; the replay states 32: refused" in trace.graphs()["note"].iloc[0]
    # without a word about sizes its work tells
    text = gzip.decompress(other.read_bytes()).replace(b"capture_8192_PIECEWISE", b"something")
    silent = tmp_path / "capture.json"
    silent.write_bytes(text)
    trace = load(decode, graphs=silent)
    assert trace.graphs()["none"].tolist() == [421]
    assert "no capture has this work: the nearest has" in trace.graphs()["note"].iloc[0]


def test_both_captures_together_leave_each_replay_its_own(corpus: Path):
    captures = [files(corpus / "graphs" / name)[1] for name in RUNS]
    for name, (kernels, *_) in RUNS.items():
        trace = load(files(corpus / "graphs" / name)[0], graphs=captures)
        assert int(trace.graphs()["exact"].sum()) == kernels


def test_the_folder_of_all_runs_is_a_session_of_joined_traces(corpus: Path):
    session = tv.load(corpus / "graphs")
    assert isinstance(session, tv.Session)
    assert session.ranks["what"].tolist() == ["trace", "trace"]
    found = [int(session.trace(row=row).graphs()["exact"].sum()) for row in range(2)]
    assert found == [421, 361]
