"""Flow events lead from the span where they start to the span where they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from trace_events import complete, load_events

from torchtrt_viz.trace import Trace


def flow(phase: str, identifier: Any, ts: float, **more: Any) -> dict[str, Any]:
    bound = {"bp": "e"} if phase == "f" else {}
    return {
        "ph": phase,
        "cat": "ac2g",
        "name": "ac2g",
        "id": identifier,
        "pid": 1,
        "tid": 1,
        "ts": ts,
        **bound,
        **more,
    }


def links(trace: Trace) -> list[tuple[str | None, str | None, int]]:
    names = trace.spans["name"].astype(object).tolist()
    return [
        (None if pd.isna(s) else names[s], None if pd.isna(t) else names[t], -1 if pd.isna(i) else i)
        for s, t, i in zip(trace.flows["source"], trace.flows["target"], trace.flows["id"], strict=True)
    ]


KERNEL = {"cat": "kernel", "pid": 0, "tid": 7}
ON_DEVICE = {"pid": 0, "tid": 7}


def test_flow_events_behind_their_spans(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("launch", 1, 2),
            flow("s", 5, 1),
            complete("kernel", 10, 4, **KERNEL),
            flow("f", 5, 10, **ON_DEVICE),
        ],
    )
    assert links(trace) == [("launch", "kernel", 5)]
    assert trace.flows["name"].astype(object).tolist() == ["ac2g"]


def test_flow_events_far_from_their_spans_bind_to_the_innermost(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("outer", 0, 100),
            complete("inner", 10, 20),
            complete("innermost", 12, 1),
            complete("kernel", 50, 4, **KERNEL),
            flow("s", 1, 15),
            flow("s", 2, 12.5),
            flow("s", 3, 40),
            flow("f", 1, 51, **ON_DEVICE),
            flow("f", 2, 50, **ON_DEVICE),
            flow("f", 3, 53, **ON_DEVICE),
        ],
    )
    assert sorted(links(trace), key=lambda link: link[2]) == [
        ("inner", "kernel", 1),
        ("innermost", "kernel", 2),
        ("outer", "kernel", 3),
    ]


def test_end_without_binding_is_the_next_span_to_begin(tmp_path: Path) -> None:
    ended = {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 1, "tid": 2, "ts": 5}
    trace = load_events(
        tmp_path,
        [
            complete("from", 0, 1),
            complete("around", 4, 3, tid=2),
            complete("next", 8, 1, tid=2),
            flow("s", 1, 0.5),
            ended,
        ],
    )
    assert links(trace) == [("from", "next", 1)]


def test_one_launch_of_many_kernels(tmp_path: Path) -> None:
    kernels: list[dict[str, Any]] = []
    for i in range(5):
        kernels += [complete(f"k{i}", 10 + i, 1, **KERNEL), flow("f", 9, 10 + i, **ON_DEVICE)]
    trace = load_events(tmp_path, [*kernels, complete("graph launch", 1, 1), flow("s", 9, 1)])
    assert links(trace) == [("graph launch", f"k{i}", 9) for i in range(5)]


def test_sides_that_are_missing(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("launch", 1, 1),
            flow("s", 1, 1),
            complete("call", 3, 1),
            flow("f", 2, 3),
            flow("s", 3, 77),
            flow("f", 3, 99),
        ],
    )
    assert sorted(links(trace), key=lambda link: link[2]) == [
        ("launch", None, 1),
        (None, "call", 2),
        (None, None, 3),
    ]


def test_steps_and_ids_used_again_are_chained_in_time(tmp_path: Path) -> None:
    spans = [complete(f"s{i}", i * 10, 5) for i in range(6)]
    points = [
        flow("f", 1, 51),  # the second use ends first in the file
        flow("s", 1, 1),
        flow("t", 1, 11),
        flow("f", 1, 21),
        flow("s", 1, 41),
    ]
    trace = load_events(tmp_path, [*spans, *points])
    assert sorted(links(trace)) == [("s0", "s1", 1), ("s1", "s2", 1), ("s4", "s5", 1)]


@pytest.mark.parametrize(("identifier", "expected"), [("0x1F", 31), ("17", 17), ("text", -1), (-4, -4)])
def test_ids(tmp_path: Path, identifier: Any, expected: int) -> None:
    trace = load_events(
        tmp_path,
        [complete("a", 1, 1), flow("s", identifier, 1), complete("b", 3, 1), flow("f", identifier, 3)],
    )
    assert links(trace) == [("a", "b", expected)]


def test_same_id_in_other_categories_is_another_flow(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("fwd", 1, 1),
            flow("s", 1, 1, cat="fwdbwd", name="fwdbwd"),
            flow("s", 1, 1),
            complete("bwd", 3, 1),
            flow("f", 1, 3, cat="fwdbwd", name="fwdbwd"),
            complete("kernel", 5, 1, **KERNEL),
            flow("f", 1, 5, **ON_DEVICE),
        ],
    )
    assert links(trace) == [("fwd", "bwd", 1), ("fwd", "kernel", 1)]
    assert trace.flows["name"].astype(object).tolist() == ["fwdbwd", "ac2g"]


def test_deep_stacks_and_many_flows_take_linear_time(tmp_path: Path) -> None:
    depth = 20000
    spans = [complete(f"d{i % 7}", i, 2 * (depth - i) - 1) for i in range(depth)]
    points = [flow("s", i, 3 * depth + i) for i in range(depth)]
    trace = load_events(tmp_path, [*spans, *points])
    assert (trace.flows["source"] == -1).all()
    assert trace.spans["depth"].max() == depth - 1


def test_points_of_a_span_that_is_left_out_lead_nowhere(tmp_path: Path) -> None:
    """A begin that never ends is no span; the flow events right behind it have no place in time."""
    base = 1_782_700_000_000_000
    flow = {"ph": "s", "cat": "c", "name": "f", "id": 1, "pid": 1, "tid": 1}
    events = [
        {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": base, "dur": 5},
        {"ph": "X", "name": "zero", "pid": 1, "tid": 1, "ts": 0, "dur": 0},
        {**flow, "ts": 0},
        {**flow, "ph": "t", "ts": 0},
        {"ph": "X", "name": "zero", "pid": 1, "tid": 1, "ts": 0, "dur": 0},
        {**flow, "ph": "t", "ts": 0},
        {"ph": "X", "name": "b", "pid": 1, "tid": 1, "ts": base + 10, "dur": 5},
        {**flow, "ph": "f", "ts": base + 10},
    ]
    flows = load_events(tmp_path, events).flows
    assert set(flows["source"].dropna()) <= {0, 1}
    assert flows["target"].tolist()[-1] == 1
