"""No table's sum is more than was recorded: one launch counts once, a thread's time is divided once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from plain_sums import excesses, same_thread
from trace_builder import Builder

from torchtrt_viz import analysis
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.model import schema
from torchtrt_viz.trace import Trace

HOST = (
    *("method", "operator", "annotation", "step", "runtime"),
    *("delegate", "phase", "layer", "python", "other"),
)
GPU = ("kernel", "memcpy", "memset", "communication", "phase", "layer", "annotation")
NAMES = ("a", "b", "cudaLaunchKernel", "cudaGraphLaunch", "cudaDeviceSynchronize", "torchtrt.enqueue_host")

#: Track, kind, name, start, duration, correlation, timing, iteration, instance.
spans = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(0, 9),
        st.sampled_from(NAMES),
        st.integers(0, 40),
        st.integers(0, 40),
        st.integers(-1, 3),
        st.sampled_from(("measured", "measured", "measured", "modeled", "implausible", "aggregate")),
        st.integers(-1, 5),
        st.sampled_from((None, "e0", "e1")),
    ),
    min_size=1,
    max_size=24,
)


def _trace(found: list[tuple[Any, ...]], without_domain: frozenset[int] = frozenset()) -> Trace:
    b = Builder()
    tracks = [
        b.track("python", process="7", thread="7"),
        b.track("operators", process=7, thread=7),
        b.track("etdump", "method", process=None, thread=7),
        b.track("other", process=7, thread=8),
        b.track("ranges", "async", process=7, thread=None),
        b.stream(7),
        b.stream(9),
    ]
    for track, kind, name, start, dur, correlation, timing, iteration, instance in found:
        kinds = GPU if track > 4 else HOST
        b.span(
            name,
            None if timing == "aggregate" else start,
            dur,
            tracks[track],
            kinds[kind % len(kinds)],
            timing=timing,
            correlation=correlation,
            iteration=iteration,
            run_id=instance,
        )
    trace = b.build()
    if without_domain:
        codes = trace.spans["domain"].cat.codes.to_numpy().copy()
        codes[[row for row in without_domain if row < len(codes)]] = -1
        trace.spans["domain"] = pd.Categorical.from_codes(codes, categories=list(schema.DOMAINS))
    return trace


@given(found=spans, without_domain=st.frozensets(st.integers(0, 23), max_size=3))
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking such traces takes minutes
)
def test_no_sum_is_more_than_was_recorded(
    found: list[tuple[Any, ...]], without_domain: frozenset[int]
) -> None:
    assert list(excesses(_trace(found, without_domain))) == []


def test_a_graph_is_launched_once() -> None:
    b = Builder()
    main, one, two = b.track("main"), b.stream(7), b.stream(9)
    b.span("aten::replay", 0, 1000, main)
    b.span("cudaGraphLaunch", 100, 500, main, "runtime", correlation=1)
    for at in range(40):
        b.span(f"k{at % 4}", 700 + 20 * at, 10, one if at % 2 else two, "kernel", correlation=1)
    b.span("cudaLaunchKernel", 620, 8, main, "runtime", correlation=2)
    b.span("k0", 1600, 30, one, "kernel", correlation=2)
    trace = b.build()
    delays = analysis.launch_delays(trace)
    assert delays[["launched_by", "pieces", "host_ns", "device_ns", "delay_ns"]].to_numpy().tolist() == [
        ["cudaGraphLaunch", 40, 500, 400, 700 - 600],
        ["cudaLaunchKernel", 1, 8, 30, 1600 - 628],
    ]
    assert delays["name"].isna().tolist() == [True, False]
    stats = analysis.launch_stats(trace, sort="launched_by")
    assert stats["calls"].tolist() == [1, 1]
    assert stats["pieces"].tolist() == [40, 1]
    assert (stats["host_mean_ns"] * stats["calls"]).sum() == 508
    found = analysis.explain(trace, top=20)
    assert not found["finding"].str.contains("launching cost").any(), "one of two launches proves nothing"


def test_launches_that_cost_more_than_their_work_are_a_finding_with_their_own_time() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    for at in range(20):
        b.span("cudaGraphLaunch", 1000 * at, 400, main, "runtime", correlation=at + 1)
        for piece in range(3):
            b.span("k", 1000 * at + 500 + 20 * piece, 10, one, "kernel", correlation=at + 1)
    table = analysis.explain(b.build(), top=20)
    (text,) = table.loc[table["finding"].str.contains("launching cost"), "finding"]
    assert text == (
        "20 of 20 launches took the host longer than the work took the device; launching cost the host 8 µs."
    )


def _two_recorders() -> Trace:
    b = Builder()
    ours = b.track("demo.etdp", "method", process=None, thread=7)
    torch = b.track("thread 7 (python)", process=7, thread="7")
    b.span("request", 0, 1000, torch, "annotation")
    b.span("Method::execute", 100, 800, ours, "method")
    b.span("DELEGATE_CALL", 200, 500, ours, "delegate", run_id="e")
    b.span("aten::add", 250, 100, torch)
    b.span("aten::mul", 890, 50, torch)  # ends after the method that it began in: two clocks
    return b.build()


def test_two_recorders_of_one_thread_divide_its_time_once() -> None:
    trace = _two_recorders()
    assert same_thread(trace, 0, 1)
    tree = analysis.call_tree(trace)
    assert tree.set_index("name")["total_ns"].to_dict() == {
        "request": 1000,
        "Method::execute": 790,
        "aten::mul": 50,
        "DELEGATE_CALL": 500,
        "aten::add": 100,
    }
    assert dict(zip(tree["name"], tree["self_ns"], strict=True)) == {
        "request": 1000 - 790 - 50,
        "Method::execute": 100 + 190,
        "aten::mul": 50,
        "DELEGATE_CALL": 400,
        "aten::add": 100,
    }
    assert tree.loc[tree["depth"] == 0, "name"].tolist() == ["request"]
    summary = analysis.summary(trace).set_index("item")["value"]
    assert summary["threads"] == 1
    roots = analysis.call_tree(trace, by_thread=True)
    assert roots.loc[roots["depth"] == 0, "total_ns"].tolist() == [1000]


def test_what_is_not_known_is_no_thread() -> None:
    b = Builder()
    tracks = [
        b.track("a", process=None, thread=None),
        b.track("b", process=None, thread=None),
        b.track("of two", process=None, thread=5),
        b.track("c", process=1, thread=5),
        b.track("d", process=2, thread=5),
        b.track("engine layers", "engine", process="engine", thread=None),
        b.track("engine calls", "delegate", process="engine", thread=None),
    ]
    for track in tracks:
        b.span("x", 0, 10, track)
    trace = b.build()
    pairs = [(x, y) for x in tracks for y in tracks if x < y and same_thread(trace, x, y)]
    assert pairs == [(5, 6)], "two processes may have a thread 5 each; an engine's calls are one sequence"
    assert int(host_nesting(trace).self_ns.sum()) == 60


@pytest.mark.parametrize("timing", ["modeled", "implausible", "aggregate"])
def test_only_what_was_measured_is_device_work(timing: str) -> None:
    b = Builder()
    gpu = b.stream(7)
    b.span("k", 0, 100, gpu, "kernel")
    b.span("k", None if timing == "aggregate" else 50, 10**12, gpu, "kernel", timing=timing)
    trace = b.build()
    assert analysis.kernels(trace)["total_ns"].tolist() == [100]
    assert analysis.temporal_breakdown(trace)["span_ns"].tolist() == [100]
    assert np.isclose(analysis.explain(trace)["impact_ns"].max(), 100)


def test_times_of_no_known_domain_are_in_no_sum() -> None:
    b = Builder()
    main = b.track("main", "method", thread=1)
    b.span("Method::execute", 0, 1000, main, "method")
    b.span("DELEGATE_CALL", 100, 700, main, "delegate", run_id="d")
    ticks = b.span("cycles", 0, 10**9, main, "layer", timing="modeled", run_id="d")
    trace = b.build()
    codes = trace.spans["domain"].cat.codes.to_numpy().copy()
    codes[ticks] = -1
    trace.spans["domain"] = pd.Categorical.from_codes(codes, categories=list(schema.DOMAINS))
    assert list(excesses(trace)) == []
    assert analysis.layers(trace)["total_ns"].isna().tolist() == [True]
    (row,) = analysis.delegates(trace).to_dict("records")
    assert pd.isna(row["layers_ns"])
    assert row["host_total_ns"] == 700
    assert len(analysis.compare(trace, trace).query("level == 'layer'")) == 0


def test_what_no_operator_explains_is_said() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    b.span("aten::mm", 0, 100, main)
    b.span("cudaLaunchKernel", 10, 10, main, "runtime", correlation=1)
    b.span("gemm", 200, 250, gpu, "kernel", correlation=1)
    b.span("replayed", 500, 750, gpu, "kernel")
    trace = b.build()
    table = trace.operators()
    assert table.attrs["device_unexplained_ns"] == 750
    assert table.attrs["device_unexplained_pct"] == 75.0
    found = analysis.explain(trace, top=20)
    assert found.attrs["device_unexplained_pct"] == 75.0
    assert found["finding"].str.startswith("No operator explains 750 ns of 1 µs of device work (75 %").any()
    summary = analysis.summary(trace).set_index("item")["value"]
    assert summary["work that no operator launched"] == 750
