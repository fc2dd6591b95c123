"""Begin and end events become spans; asynchronous ones get lanes on which nothing overlaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trace_events import complete, load_events, warned

from torchtrt_viz.trace import Trace


def event(phase: str, ts: float, name: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return {"ph": phase, "cat": "cpu_op", **named, "pid": 1, "tid": 1, "ts": ts, **more}


def rows(trace: Trace) -> list[tuple[str, int, int, int]]:
    spans = trace.spans
    return list(
        zip(spans["name"].astype(object), spans["start_ns"], spans["dur_ns"], spans["parent"], strict=True)
    )


def test_nested_pairs_between_complete_events_keep_the_order_of_the_file(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("first", 0, 1),
            event("B", 2, "outer"),
            complete("between", 3, 1),
            event("B", 5, "inner"),
            event("E", 6),
            event("E", 9, "outer"),
            complete("last", 10, 1),
        ],
    )
    assert rows(trace) == [
        ("first", 0, 1000, -1),
        ("outer", 2000, 7000, -1),
        ("between", 3000, 1000, 1),
        ("inner", 5000, 1000, 1),
        ("last", 10000, 1000, -1),
    ]
    assert warned(trace) == {}


def test_flows_follow_their_spans_when_rows_are_reordered(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            event("B", 0, "outer"),
            complete("launch", 1, 1),
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 7, "pid": 1, "tid": 1, "ts": 1},
            complete("work", 3, 1),
            {"ph": "f", "bp": "e", "cat": "ac2g", "name": "ac2g", "id": 7, "pid": 1, "tid": 1, "ts": 3},
            event("E", 9),
        ],
    )
    names = trace.spans["name"].astype(object)
    assert names.tolist() == ["outer", "launch", "work"]
    assert [
        (names[s], names[t]) for s, t in zip(trace.flows["source"], trace.flows["target"], strict=True)
    ] == [("launch", "work")]


def test_ends_that_cross_close_each_its_own_begin(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [event("B", 0, "outer"), event("B", 1, "inner"), event("E", 5, "outer"), event("E", 6, "inner")],
    )
    assert rows(trace) == [("outer", 0, 5000, -1), ("inner", 1000, 5000, -1)]
    assert trace.instants.empty
    assert warned(trace) == {"overlap": 1}


def test_a_begin_that_never_ends_is_unfinished_and_hides_nobody(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            event("B", 0, "outer"),
            event("B", 1, "lost"),
            event("E", 5, "outer"),
            event("B", 7, "next"),
            event("E", 9, None),
        ],
    )
    assert rows(trace) == [("outer", 0, 5000, -1), ("next", 7000, 2000, -1)]
    assert trace.instants["name"].astype(object).tolist() == ["lost"]
    assert trace.instants["state"].astype(object).tolist() == ["unfinished"]
    assert warned(trace) == {"begin_without_end": 1}


def test_begin_without_end(tmp_path: Path) -> None:
    trace = load_events(tmp_path, [event("B", 4, "open", args={"x": 1}), complete("op", 0, 1)])
    assert rows(trace) == [("op", 0, 1000, -1)]
    assert trace.instants["ts_ns"].tolist() == [4000]
    assert trace.instant_args.read() == [{"x": 1}]


def test_pairs_out_of_order_in_the_file_match_by_time(tmp_path: Path) -> None:
    trace = load_events(tmp_path, [event("E", 9), event("B", 2, "late in the file")])
    assert rows(trace) == [("late in the file", 2000, 7000, -1)]


def test_arguments_of_begin_and_end_are_joined(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("op", 0, 1, args={"a": 0}),
            event("B", 2, "pair", args={"a": 1, "b": 2, "correlation": 5}),
            event("E", 3, args={"b": 3, "c": 4}),
        ],
    )
    assert trace.args.read() == [{"a": 0}, {"a": 1, "b": 3, "correlation": 5, "c": 4}]
    assert trace.spans["correlation"].fillna(-1).tolist() == [-1, 5]


def test_threads_are_paired_apart(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [event("B", 0, "a"), event("B", 1, "b", tid=2), event("E", 5), event("E", 7, tid=2)],
    )
    assert rows(trace) == [("a", 0, 5000, -1), ("b", 1000, 6000, -1)]


def async_event(phase: str, ts: float, name: str, identifier: Any, **more: Any) -> dict[str, Any]:
    return {
        "ph": phase,
        "cat": "request",
        "name": name,
        "id": identifier,
        "pid": 1,
        "tid": 1,
        "ts": ts,
        **more,
    }


def test_asynchronous_spans_nest_within_an_id_and_share_lanes_between_ids(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            async_event("b", 0, "request", "0x1"),
            async_event("b", 1, "prefill", "0x1"),
            async_event("b", 2, "request", "0x2"),
            async_event("e", 3, "prefill", "0x1"),
            async_event("n", 4, "token", "0x1"),
            async_event("e", 8, "request", "0x2"),
            async_event("e", 9, "request", "0x1"),
            async_event("b", 10, "request", "0x3"),
            async_event("e", 11, "request", "0x3"),
        ],
    )
    assert rows(trace) == [
        ("request", 0, 9000, -1),
        ("prefill", 1000, 2000, 0),
        ("request", 2000, 6000, -1),
        ("request", 10000, 1000, -1),
    ]
    track = trace.spans["track"].tolist()
    assert track[0] == track[1]
    assert track[2] != track[0]
    assert track[3] in (track[0], track[2])  # a lane that is free again
    assert set(trace.tracks["type"].astype(object)[track]) == {"async"}
    assert trace.instants["name"].astype(object).tolist() == ["token"]
    assert warned(trace) == {}


def test_old_asynchronous_phases(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [async_event("S", 0, "load", 5), async_event("T", 1, "load", 5), async_event("F", 4, "load", 5)],
    )
    assert rows(trace) == [("load", 0, 4000, -1)]
    assert len(trace.instants) == 1


def test_same_id_in_other_categories_and_scopes_is_other_work(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            async_event("b", 0, "x", 1),
            async_event("b", 1, "x", 1, cat="other"),
            async_event("b", 2, "x", 1, scope="s"),
            async_event("e", 3, "x", 1, scope="s"),
            async_event("e", 5, "x", 1, cat="other"),
            async_event("e", 9, "x", 1),
        ],
    )
    assert [(start, duration) for _, start, duration, _ in rows(trace)] == [
        (0, 9000),
        (1000, 4000),
        (2000, 1000),
    ]


def test_unfinished_asynchronous_work_keeps_what_is_whole_inside(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [async_event("b", 0, "request", 1), async_event("b", 1, "step", 1), async_event("e", 2, "step", 1)],
    )
    assert rows(trace) == [("step", 1000, 1000, -1)]
    assert trace.instants["name"].astype(object).tolist() == ["request"]
    assert warned(trace) == {"begin_without_end": 1}


def test_many_ends_that_match_nothing_take_linear_time(tmp_path: Path) -> None:
    events = [event("B", i, f"b{i}") for i in range(20000)] + [
        event("E", 30000 + i, "none") for i in range(20000)
    ]
    trace = load_events(tmp_path, events)
    assert warned(trace) == {"end_without_begin": 20000, "begin_without_end": 20000}
