"""Device-time analyses on real traces, exact.

The raw files are read with the standard library and reduced by plain loops.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import raw_kineto

import torchtrt_viz as tv
from torchtrt_viz.analysis import (
    copies,
    idle_causes,
    kernel_types,
    launch_delays,
    queue_length,
    temporal_breakdown,
)
from torchtrt_viz.trace import Trace

FILES = (
    "a100_alexnet_cuda_sync.json.gz",
    "a100_ddp_nccl_fwdbwd.json.gz",
    "a100_rank0_of16_train.json.gz",
    "a100_triton_cuda_driver.json.gz",
    "b200_eager_pystacks_rank0_of8.json.gz",
    "legacy_category_names_rank1.json.gz",
    "legacy_tb_plugin_resnet50.json.gz",
    "mi210_gpu_only.json.gz",
    "mi250_rocm62_minitoy.json.gz",
    "mi300x_resnet_train_fwdbwd_pystacks.json.gz",
    "multirank_sampled_rank-0.json.gz",
    "multirank_sampled_rank-1.json.gz",
    "quirk_plain_json_backward_thread.json",
)

COMMUNICATION = re.compile(r"nccl|all_reduce_kernel", re.IGNORECASE)


@lru_cache(maxsize=2)
def _loaded(path: Path) -> Trace:
    trace = tv.load(path)
    assert isinstance(trace, Trace)
    return trace


@lru_cache(maxsize=2)
def _raw(path: Path) -> list[dict[str, Any]]:
    return raw_kineto.events(path)


@lru_cache(maxsize=2)
def _device(path: Path) -> list[dict[str, Any]]:
    return raw_kineto.device_events(_raw(path))


@pytest.fixture(params=FILES, scope="module")
def path(request: pytest.FixtureRequest, corpus: Path) -> Path:
    return corpus / "kineto" / request.param


def _kind(event: dict[str, Any]) -> str:
    category = str(event["cat"]).lower()
    if category == "kernel":
        return "communication" if COMMUNICATION.search(event["name"]) else "compute"
    return "copy"


def test_temporal_breakdown_is_that_of_the_file(path: Path) -> None:
    events = _device(path)
    (row,) = temporal_breakdown(_loaded(path)).to_dict("records")
    sets = {
        kind: raw_kineto.union([e for e in events if _kind(e) == kind])
        for kind in ("compute", "communication", "copy")
    }
    everything = raw_kineto.union(events)
    span = max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)
    assert row["kernels"] == len(events)
    assert row["span_ns"] == span
    assert row["busy_ns"] == raw_kineto.length(everything)
    assert row["idle_ns"] == span - raw_kineto.length(everything)
    for kind, found in sets.items():
        assert row[f"{kind}_ns"] == raw_kineto.length(found)
    hidden = raw_kineto.intersection(sets["communication"], sets["compute"])
    assert row["overlapped_communication_ns"] == hidden
    assert row["exposed_communication_ns"] == raw_kineto.length(sets["communication"]) - hidden
    # what is neither compute nor exposed communication nor idle can only be exposed copying
    rest = row["busy_ns"] - row["compute_ns"] - row["exposed_communication_ns"]
    assert row["exposed_copy_ns"] == rest
    types = kernel_types(_loaded(path))
    assert types["ns"].sum() == row["busy_ns"]


def test_idle_time_and_its_causes_are_those_of_the_file(path: Path) -> None:
    starts = {}
    for event in _raw(path):
        if str(event.get("cat", "")).lower() in ("cuda_runtime", "cuda_driver", "runtime"):
            correlation = (event.get("args") or {}).get("correlation")
            if correlation:
                starts[correlation] = max(event["ts"], starts.get(correlation, event["ts"]))
    expected: dict[str, int] = defaultdict(int)
    streams = defaultdict(list)
    for event in _device(path):
        streams[(event["pid"], event["args"]["stream"])].append(event)
    for events in streams.values():
        reach = None
        for event in events:
            if reach is not None and event["ts"] > reach:
                launched = starts.get(event["args"].get("correlation"))
                gap = event["ts"] - reach
                cause = (
                    "unknown"
                    if launched is None
                    else "host wait"
                    if launched > reach
                    else "kernel wait"
                    if gap < 30_000
                    else "other"
                )
                expected[cause] += gap
            end = event["ts"] + event["dur"]
            reach = end if reach is None else max(reach, end)
    table = idle_causes(_loaded(path))
    assert table.groupby("cause", observed=True)["idle_ns"].sum().to_dict() == dict(expected)


def test_launch_delays_are_those_of_the_file(path: Path) -> None:
    calls: dict[Any, dict[str, Any]] = {}
    for event in sorted(_raw(path), key=lambda e: e["ts"]):
        if str(event.get("cat", "")).lower() in ("cuda_runtime", "cuda_driver", "runtime"):
            correlation = (event.get("args") or {}).get("correlation")
            if correlation:
                calls[correlation] = event
    linked = [(calls[c], e) for e in _device(path) if (c := e["args"].get("correlation")) in calls]
    started = {id(call): (call, event) for call, event in sorted(linked, key=lambda x: -x[1]["ts"])}
    table = launch_delays(_loaded(path))
    assert len(table) == len(started), "a call that starts a graph is one launch"
    assert table["pieces"].sum() == len(linked)
    assert table["host_ns"].sum() == sum(call["dur"] for call, _ in started.values())
    assert table["device_ns"].sum() == sum(event["dur"] for _, event in linked)
    assert table["delay_ns"].sum() == sum(e["ts"] - c["ts"] - c["dur"] for c, e in started.values())


def test_queues_are_those_of_the_file(path: Path) -> None:
    calls: dict[Any, int] = {}
    for event in sorted(_raw(path), key=lambda e: e["ts"]):
        if str(event.get("cat", "")).lower() in ("cuda_runtime", "cuda_driver", "runtime"):
            correlation = (event.get("args") or {}).get("correlation")
            if correlation:
                calls[correlation] = event["ts"]
    steps = defaultdict(list)
    seen = set()
    for event in _device(path):
        correlation = event["args"].get("correlation")
        lane = (event["pid"], event["args"]["stream"])
        if correlation in calls and (lane, correlation) not in seen:
            seen.add((lane, correlation))
            launched = calls[correlation]
            steps[lane] += [(launched, 1), (max(event["ts"], launched), -1)]
    expected = {}
    for (_, stream), found in steps.items():
        at = defaultdict(int)
        for when, step in found:
            at[when] += step
        length = 0
        expected[str(stream)] = series = []
        for when in sorted(at):
            length += at[when]
            series.append(length)
    table = queue_length(_loaded(path))
    ours = {str(stream).split()[-1]: part["length"].tolist() for stream, part in table.groupby("stream")}
    assert ours == expected


def test_copies_are_those_of_the_file(path: Path) -> None:
    events = [e for e in _device(path) if _kind(e) == "copy"]
    table = copies(_loaded(path))
    assert table["calls"].sum() == len(events)
    calls = {
        args["correlation"]: args
        for e in _raw(path)
        if "runtime" in str(e.get("cat", "")).lower() and (args := e.get("args") or {}).get("correlation")
    }
    # on ROCm the copy does not tell its size, the call that made it does
    sizes = [
        int(e["args"].get("bytes", calls.get(e["args"].get("correlation"), {}).get("size", 0)))
        for e in events
    ]
    assert table["bytes"].sum() == sum(sizes)
    assert table["total_ns"].sum() == sum(e["dur"] for e in events)
