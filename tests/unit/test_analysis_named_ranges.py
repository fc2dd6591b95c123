"""Ranges projected onto the device: equal to going through every range and every piece of work."""

from __future__ import annotations

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import Builder

from torchtrt_viz import analysis

TIMES = st.integers(0, 200)
RANGES = st.lists(st.tuples(TIMES, TIMES, st.booleans()), max_size=12)
CALLS = st.lists(
    st.tuples(TIMES, st.booleans(), st.lists(st.tuples(TIMES, TIMES, st.booleans()), max_size=4)), max_size=12
)


def length_of_union(intervals: list[tuple[int, int]]) -> int:
    return len({at for start, end in intervals for at in range(start, end)})


@settings(max_examples=40)
@given(RANGES, CALLS)
def test_projection_is_that_of_going_through_all(
    ranges: list[tuple[int, int, bool]], calls: list[tuple[int, bool, list[tuple[int, int, bool]]]]
) -> None:
    b = Builder()
    threads = [b.track(f"thread {n}", process=1, thread=n) for n in (1, 2)]
    streams = [b.stream(7), b.stream(8)]
    expected = {}
    for start, dur, thread in ranges:
        b.span("r", start, dur, threads[thread], "annotation")
    for number, (start, thread, pieces) in enumerate(calls):
        b.span("cudaGraphLaunch", start, 3, threads[thread], "runtime", correlation=number + 1)
        for begin, dur, stream in pieces:
            b.span("k", 1000 + begin, dur, streams[stream], "kernel", correlation=number + 1)
    for row, (start, dur, thread) in enumerate(ranges):
        inside = [pieces for at, of, pieces in calls if of == thread and start <= at < start + dur and pieces]
        work = [(1000 + begin, 1000 + begin + length) for pieces in inside for begin, length, _ in pieces]
        expected[row] = (
            len(inside),
            len(work),
            min((begin for begin, _ in work), default=None),
            max((end for _, end in work), default=None),
            length_of_union(work) if work else None,
            sum(end - begin for begin, end in work) if work else None,
        )
    table = analysis.nvtx(b.build())
    found = {}
    for row in table.itertuples():
        values = [row.launches, row.pieces, row.device_start_ns, row.device_span_ns, row.device_busy_ns]
        known = [None if pd.isna(value) else int(value) for value in (*values, row.device_sum_ns)]
        if known[2] is not None:
            known[3] += known[2]
        found[row.row] = tuple(known)
    assert found == expected


def test_ranges_have_the_range_around_them() -> None:
    b = Builder()
    thread = b.track("thread 1", process=1, thread=1)
    outer = b.span("outer", 0, 100, thread, "annotation")
    b.span("aten::mm", 10, 50, thread, "operator")
    b.span("inner", 20, 10, thread, "annotation")
    table = analysis.nvtx(b.build()).set_index("name")
    assert list(table.index) == ["outer", "inner"]
    assert table["parent"]["inner"] == table["row"]["outer"]
    assert pd.isna(table["parent"]["outer"])
    assert outer is None or outer == table["row"]["outer"]
    with_operators = analysis.nvtx(b.build(), kinds=("annotation", "operator"))
    assert with_operators["name"].tolist() == ["outer", "aten::mm", "inner"]
