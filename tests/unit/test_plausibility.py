"""What cannot be true is marked, shown and in no sum; what is unusual and legal stays.

Expected values are worked out by hand from the times that each test writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_events import load_events

import torchtrt_viz as tv
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.service import aggregates
from torchtrt_viz.trace import Trace

DAY_US = 86_400 * 10**6


def kernel(ts: float, dur: float, correlation: int | None = None, stream: int = 7) -> dict[str, Any]:
    args = {"device": 0, "stream": stream}
    if correlation is not None:
        args["correlation"] = correlation
    return {
        "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream, "ts": ts, "dur": dur, "args": args,
    }  # fmt: skip


def queue(count: int, dur: float = 5, gap: float = 10, base: float = 1000) -> list[dict[str, Any]]:
    return [kernel(base + gap * i, dur, i + 1) for i in range(count)]


def implausible(trace: Trace) -> list[int]:
    return np.flatnonzero((trace.spans["timing"] == "implausible").to_numpy()).tolist()


def warned(trace: Trace) -> int:
    return sum(w.count for w in trace.meta["warnings"] if w.code == "implausible_time")


def test_a_kernel_that_outlasts_its_queue_is_marked_and_in_no_sum(tmp_path: Path) -> None:
    events = queue(100)
    events[20]["dur"] = 1_600_000
    trace = load_events(tmp_path, events)
    assert implausible(trace) == [20]
    assert warned(trace) == 1
    row = trace.kernels().iloc[0]
    assert (row["calls"], row["total_ns"], row["mean_ns"]) == (99, 99 * 5000, 5000)
    assert trace.duration_ns == 99 * 10_000 + 5000
    # what came after it is nobody's child
    assert trace.spans["depth"].tolist() == [0] * 100
    assert trace.spans["parent"].tolist() == [-1] * 100


def test_a_kernel_that_ends_with_the_recording_is_marked(tmp_path: Path) -> None:
    # never ended: it got the recording's end, inside the time of the others
    events = queue(100)
    events[40]["dur"] = 10 * 100 - 10 * 40
    assert implausible(load_events(tmp_path, events)) == [40]


def test_the_last_kernel_has_no_successors_but_the_host_to_contradict_it(tmp_path: Path) -> None:
    events = queue(50)
    events[-1]["dur"] = 1_600_000
    host = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 9, "tid": 9, "ts": 1000, "dur": 600}
    assert implausible(load_events(tmp_path, [host, *events])) == [50]
    # without a host that was recorded nothing contradicts it
    assert implausible(load_events(tmp_path, events)) == []
    # a host that waited for it confirms it
    waiting = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 9, "tid": 9}
    confirmed = [host, {**waiting, "ts": 1650, "dur": 1_600_000}, *events]
    assert implausible(load_events(tmp_path, confirmed)) == []


def test_dependent_launches_overlap_legally(tmp_path: Path) -> None:
    # each begins 2 us before its predecessor ends
    assert implausible(load_events(tmp_path, queue(200, dur=12, gap=10))) == []


def test_branches_of_a_graph_overlap_legally(tmp_path: Path) -> None:
    events = queue(100)
    for event in events[30:60]:
        event["args"]["correlation"] = 77  # one launch of a graph: 30 kernels
    events[30]["dur"] = 300
    assert implausible(load_events(tmp_path, events)) == []


def test_a_queue_that_is_never_in_order_is_left_alone(tmp_path: Path) -> None:
    assert implausible(load_events(tmp_path, queue(100, dur=500, gap=10))) == []


def test_a_few_spans_prove_nothing(tmp_path: Path) -> None:
    events = queue(5)
    events[0]["dur"] = 1000
    assert implausible(load_events(tmp_path, events)) == []


def test_streams_are_judged_by_themselves(tmp_path: Path) -> None:
    other = [kernel(1000, 2000, 900, stream=20)]
    assert implausible(load_events(tmp_path, [*queue(100), *other])) == []


@pytest.mark.parametrize("away_us", [-30 * DAY_US, 400 * DAY_US])
def test_events_of_another_clock_are_apart(tmp_path: Path, away_us: int) -> None:
    base = 50 * 365 * DAY_US
    events = queue(20, base=base)
    host = [
        {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 9, "tid": 9, "ts": base + away_us + i, "dur": 1}
        for i in range(3)
    ]
    trace = load_events(tmp_path, [*events, *host])
    assert implausible(trace) == [20, 21, 22]
    assert warned(trace) == 3
    assert trace.duration_ns == 19 * 10_000 + 5000
    assert trace.kernels()["calls"].tolist() == [20]
    trace.explain()


def test_they_are_shown_and_do_not_stretch_the_timeline(tmp_path: Path) -> None:
    events = queue(100)
    events[20]["dur"] = 1_600_000
    events[40]["dur"] = 500  # ends inside
    trace = load_events(tmp_path, events)
    assert implausible(trace) == [20, 40]
    scene = Scene.of(trace)
    assert scene.length_ns == trace.duration_ns
    assert [lane.role for track in scene.tracks for lane in track.lanes] == ["spans", "implausible"]
    listed = aggregates(scene)
    assert (listed["total"], listed["rows"][0]["dur"]) == (1, 1_600_000_000)


def test_the_report_of_a_marked_trace_is_written(tmp_path: Path) -> None:
    events = queue(100)
    events[20]["dur"] = 1_600_000
    trace = load_events(tmp_path, events)
    trace.to_html(tmp_path / "page.html")
    assert "implausible" in (tmp_path / "page.html").read_text()


def test_timings_are_documented() -> None:
    assert "implausible" in tv.schema.TIMINGS


def test_instants_and_counters_of_another_clock_are_told_too(tmp_path: Path) -> None:
    base = 50 * 365 * DAY_US
    events = [
        *queue(3, base=base),
        {"ph": "i", "name": "mark", "pid": 9, "tid": 9, "ts": 5},
        {"ph": "i", "name": "mark", "pid": 9, "tid": 9, "ts": base},
        {"ph": "C", "name": "used", "pid": 9, "ts": 0, "args": {"bytes": 1}},
        {"ph": "C", "name": "used", "pid": 9, "ts": base, "args": {"bytes": 2}},
    ]
    trace = load_events(tmp_path, events)
    assert implausible(trace) == []
    assert trace.instants["state"].tolist() == ["invalid", "instant"]
    assert trace.counters["value"].tolist() == [2]
    assert warned(trace) == 2
