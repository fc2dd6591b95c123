"""Trace-event files of other people's reports: the right values of ``../shared/cases/outside/README.md``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import torchtrt_viz as tv
from torchtrt_viz.trace import Trace


@pytest.fixture(scope="module")
def outside(cases: Path) -> Path:
    return cases / "outside"


def load(path: Path) -> Trace:
    trace = tv.load(path)
    assert isinstance(trace, Trace)
    return trace


def codes(trace: Trace) -> list[str]:
    return [warning.code for warning in trace.meta["warnings"]]


def sums(trace: Trace) -> dict[tuple[str, str, str], tuple[int, int]]:
    """(kind, domain, timing) -> number of spans and their ns, by a plain loop."""
    out: dict[tuple[str, str, str], tuple[int, int]] = {}
    spans = trace.spans
    for kind, domain, timing, dur in zip(
        spans["kind"], spans["domain"], spans["timing"], spans["dur_ns"].tolist(), strict=True
    ):
        count, total = out.get((kind, domain, timing), (0, 0))
        out[kind, domain, timing] = (count + 1, total + dur)
    return out


def test_jax_says_devices_by_names(outside: Path) -> None:
    trace = load(outside / "device_rows_named_by_metadata" / "jax_gpu.json")
    found = sums(trace)
    assert found["kernel", "gpu", "measured"] == (5, 101_250)
    assert found["annotation", "gpu", "modeled"][0] == 10  # XLA Ops and XLA Modules repeat the streams
    kernels = trace.spans[trace.spans["kind"] == "kernel"]
    assert trace.tracks["label"].iloc[kernels["track"].unique()].tolist() == [
        "GPU 0 Stream #13(Compute,MemcpyH2D)"
    ]
    assert int(trace.kernels()["total_ns"].sum()) == 101_250


def test_ascend_says_devices_by_names(outside: Path) -> None:
    trace = load(outside / "device_rows_named_by_metadata" / "ascend_trace_view.json")
    found = sums(trace)
    assert found["kernel", "gpu", "measured"][0] == 5
    assert found["communication", "gpu", "measured"][0] == 5
    assert found["annotation", "gpu", "modeled"][0] == 15  # Overlap Analysis
    names = trace.spans[trace.spans["kind"] == "kernel"]["name"].unique().tolist()
    assert names == ["MatMulV2"]


def test_nsys2json_says_devices_by_process_and_thread(outside: Path) -> None:
    path = outside / "device_rows_named_by_metadata" / "nsys2json.json"
    trace = load(path)
    raw = json.loads(path.read_text())
    events = raw["traceEvents"] if isinstance(raw, dict) else raw
    expected = [e for e in events if str(e.get("tid", "")).startswith("Stream ") and e["ph"] == "X"]
    found = sums(trace)["kernel", "gpu", "measured"]
    assert found[0] == len(expected)
    assert found[1] == sum(round(float(e["dur"]) * 1000) for e in expected)


def test_tensorflow_1_says_devices_by_names(outside: Path) -> None:
    path = outside / "device_rows_named_by_metadata" / "tf1_timeline.json"
    trace = load(path)
    events = json.loads(path.read_text())["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    device = {pid for pid, name in processes.items() if name.startswith(("/device:GPU", "/gpu:"))}
    expected = [e for e in events if e["ph"] == "X" and e["pid"] in device]
    found = sums(trace)
    on_gpu = [value for (_, domain, _), value in found.items() if domain == "gpu"]
    assert sum(count for count, _ in on_gpu) == len(expected) > 0
    assert sum(ns for _, ns in on_gpu) == sum(round(e["dur"] * 1000) for e in expected)


def test_ends_close_their_own_begin(outside: Path) -> None:
    folder = outside / "ends_that_cross"
    assert load(folder / "begin_end_crossing_names.json").spans["dur_ns"].tolist() == [20_000, 20_000, 10_000]
    assert load(folder / "async_same_id_interleaved.json").spans["dur_ns"].tolist() == [
        40_000, 10_000, 10_000, 10_000, 10_000,
    ]  # fmt: skip


def test_global_ids_cross_processes_and_local_ids_do_not(outside: Path) -> None:
    trace = load(outside / "id_scopes" / "async_global_id_two_processes.json")
    in_async = trace.tracks["type"].eq("async").to_numpy()[trace.spans["track"].to_numpy()]
    assert trace.spans["dur_ns"][in_async].tolist() == [60_000, 30_000, 40_000]
    assert len(trace.flows) == 1


def test_zero_times_beside_an_epoch_are_no_times(outside: Path) -> None:
    trace = load(outside / "zero_times_real_epoch" / "zero_times_second_half.json")
    assert trace.duration_ns == 914_000
    kernels = trace.kernels()
    assert (kernels["calls"].tolist(), kernels["mean_ns"].tolist()) == ([10], [4000])
    assert (trace.instants["state"] == "invalid").sum() == 30
    assert codes(trace) == ["zero_time"]


def test_kernels_that_outlast_their_stream(outside: Path) -> None:
    path = outside / "impossible_device_durations" / "impossible_kernel_durations.json"
    trace = load(path)
    marked = trace.spans["timing"] == "implausible"
    assert trace.spans["dur_ns"][marked].tolist() == [1_600_000_000] * 2
    [warning] = [w for w in trace.meta["warnings"] if w.code == "implausible_time"]
    assert warning.count == 2
    assert "stream 3" in warning.message
    assert "3.2 s" in warning.message
    assert trace.kernels()["total_ns"].tolist() == [98 * 50_000]
    assert trace.duration_ns == 5_990_000
    assert "1.6" not in " ".join(trace.explain()["finding"])


def test_calls_that_never_close_take_nobody_in(outside: Path) -> None:
    path = outside / "python_calls_never_closed" / "python_calls_never_closed.json"
    trace = load(path)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]
    row_of = {e["args"]["Python id"]: row for row, e in enumerate(events) if "Python id" in e.get("args", {})}
    stated = {
        row_of[e["args"]["Python id"]]: row_of.get(e["args"]["Python parent id"], -1)
        for e in events
        if "Python id" in e.get("args", {})
    }
    assert len(stated) == 25
    assert {row: int(trace.spans["parent"].iloc[row]) for row in stated} == stated
    assert int(trace.spans["depth"].max()) <= 4
    steps = trace.spans[trace.spans["name"] == "main.py(5): step"]
    assert (steps["self_ns"] < steps["dur_ns"]).all()
    assert codes(trace) == ["unclosed_call"]


def test_documents_one_after_the_other_are_all_read(outside: Path) -> None:
    trace = load(outside / "several_documents_in_one_file" / "ascend_joined_fragments.json")
    assert len(trace.spans) == 35
    assert codes(trace) == ["another_document"]


def test_accounting_equals_a_walk_over_the_raw_files(outside: Path) -> None:
    """Every event of every JSON file that one document holds is read, left out or unread."""
    checked = 0
    for path in sorted(outside.rglob("*.json")):
        try:
            raw: Any = json.loads(path.read_text())
        except json.JSONDecodeError:
            continue  # several documents
        events = raw.get("traceEvents") if isinstance(raw, dict) else raw
        if (
            not isinstance(events, list)
            or not events
            or not isinstance(events[0], dict)
            or "ph" not in events[0]
        ):
            continue
        trace = tv.load(path)
        for one in [trace] if isinstance(trace, Trace) else []:
            accounting = one.meta["accounting"]
            left = sum(accounting["left_out"].values()) + sum(accounting["unread"].values())
            assert accounting["in_file"] == len(events) == accounting["read"] + left, path.name
            checked += 1
    assert checked >= 12
