"""Critical paths of traces whose dependencies are known, and the accounts of real ones."""

from __future__ import annotations

import numpy as np
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.core.flatten import innermost_line, pieces_of
from torchtrt_viz.analysis.device.critical import critical_path, critical_path_summary, host_activity
from torchtrt_viz.errors import OptionError
from torchtrt_viz.trace import Trace


def _pieces(trace: Trace, **options: int) -> list[tuple[str, str, int, int]]:
    path = critical_path(trace, **options)
    starts, durations = path["start_ns"].to_numpy(), path["dur_ns"].to_numpy()
    assert (starts[1:] == (starts + durations)[:-1]).all(), "each piece begins where the one before ended"
    return list(
        zip(
            path["segment"],
            path["name"].fillna(""),
            starts.tolist(),
            (starts + durations).tolist(),
            strict=True,
        )
    )


def test_through_launch_kernels_and_synchronisation() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    b.span("forward", 0, 1000, main, "annotation")
    b.span("cudaLaunchKernel", 100, 20, main, "runtime", correlation=1)
    b.span("cudaLaunchKernel", 130, 20, main, "runtime", correlation=2)
    b.span("cudaDeviceSynchronize", 200, 700, main, "runtime", correlation=3)
    b.span("first", 150, 300, one, "kernel", correlation=1)
    b.span("second", 460, 400, one, "kernel", correlation=2)
    assert _pieces(b.build()) == [
        ("host", "main", 0, 120),
        ("launch delay", "first", 120, 150),
        ("compute", "first", 150, 450),
        ("kernel gap", "second", 450, 460),
        ("compute", "second", 460, 860),
        ("synchronisation", "cudaDeviceSynchronize", 860, 900),
        ("host", "main", 900, 1000),
    ]


def test_a_device_that_waits_for_the_host_leads_through_the_host() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    b.span("aten::a", 0, 500, main)
    b.span("cudaLaunchKernel", 50, 10, main, "runtime", correlation=1)
    b.span("cudaLaunchKernel", 400, 10, main, "runtime", correlation=2)
    b.span("k1", 70, 30, one, "kernel", correlation=1)
    b.span("k2", 420, 300, one, "kernel", correlation=2)
    assert _pieces(b.build()) == [
        ("host", "main", 0, 410),
        ("launch delay", "k2", 410, 420),
        ("compute", "k2", 420, 720),
    ]


def test_a_blocking_copy_waits_for_what_is_before_it() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    b.span("cudaLaunchKernel", 0, 10, main, "runtime", correlation=1)
    b.span("cudaMemcpyAsync", 20, 500, main, "runtime", correlation=2)
    b.span("k", 20, 400, one, "kernel", correlation=1)
    b.span("Memcpy DtoH (Device -> Pageable)", 430, 60, one, "memcpy", correlation=2)
    assert _pieces(b.build()) == [
        ("host", "main", 0, 10),
        ("launch delay", "k", 10, 20),
        ("compute", "k", 20, 420),
        ("kernel gap", "Memcpy DtoH (Device -> Pageable)", 420, 430),
        ("copy", "Memcpy DtoH (Device -> Pageable)", 430, 490),
        ("synchronisation", "cudaMemcpyAsync", 490, 520),
    ]


def test_a_stream_that_was_told_to_wait_leads_to_the_other_stream() -> None:
    b = Builder()
    main, one, two = b.track("main"), b.stream(7), b.stream(9)
    b.span("cudaLaunchKernel", 0, 10, main, "runtime", correlation=1)
    b.span("cudaLaunchKernel", 20, 10, main, "runtime", correlation=2)
    b.span("forward", 0, 70, main, "annotation")
    b.span("cudaStreamWaitEvent", 40, 5, main, "runtime")
    b.span("cudaLaunchKernel", 50, 10, main, "runtime", correlation=3)
    b.span("before", 30, 50, one, "kernel", correlation=1)
    b.span("ncclDevKernel_AllReduce", 40, 900_000, two, "kernel", correlation=2)
    b.span("after", 1_000_000, 100, one, "kernel", correlation=3)
    path = critical_path(b.build())
    assert path["segment"].tolist() == ["host", "launch delay", "communication", "stream wait", "compute"]
    assert path["presumed"].tolist() == [False, False, False, True, False]


def test_backward_waits_for_the_thread_of_autograd() -> None:
    b = Builder()
    main, grad = b.track("main"), b.track("autograd")
    b.span("train.py(3): step", 0, 1000, main, "python")
    b.span("aten::loss", 50, 40, main)
    b.span("run_backward", 100, 800, main, "python")
    b.span("MulBackward0", 150, 300, grad)
    b.span("AddBackward0", 460, 400, grad)
    b.span("aten::step", 920, 60, main)
    pieces = _pieces(b.build())
    assert [(segment, name, end - begin) for segment, name, begin, end in pieces if segment == "host"] == [
        ("host", "main", 150),
        ("host", "autograd", 300),
        ("host", "main", 10),
        ("host", "autograd", 400),
        ("host", "main", 140),
    ]


def test_an_operator_without_children_is_taken_to_compute() -> None:
    b = Builder()
    main, worker = b.track("main"), b.track("data loader")
    b.span("aten::conv", 0, 1000, main)
    b.span("aten::read", 200, 300, worker)
    assert _pieces(b.build()) == [("host", "main", 0, 1000)]


def test_idle_time_is_named() -> None:
    b = Builder()
    main = b.track("main")
    b.span("a", 0, 100, main)
    b.span("b", 300, 100, main)
    assert _pieces(b.build()) == [
        ("host", "main", 0, 100),
        ("host idle", "", 100, 300),
        ("host", "main", 300, 400),
    ]


def test_a_long_wait_without_a_recorded_reason_is_said_to_be_unexplained() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    b.span("cudaLaunchKernel", 0, 10, main, "runtime", correlation=1)
    b.span("cudaLaunchKernel", 10, 10, main, "runtime", correlation=2)
    b.span("a", 20, 10, one, "kernel", correlation=1)
    b.span("b", 100_030, 10, one, "kernel", correlation=2)
    assert critical_path(b.build())["segment"].tolist()[-3:] == ["compute", "unexplained gap", "compute"]


def test_windows_and_iterations() -> None:
    b = Builder()
    main = b.track("main")
    for step in range(3):
        b.span(f"ProfilerStep#{step}", 100 * step, 100, main, "step", iteration=step)
    assert _pieces(b.build(), iteration=1) == [("host", "main", 100, 200)]
    assert _pieces(b.build(), start_ns=50, end_ns=120) == [("host", "main", 50, 120)]
    with pytest.raises(OptionError, match="0, 1, 2"):
        critical_path(b.build(), iteration=7)
    with pytest.raises(OptionError, match="after start_ns"):
        critical_path(b.build(), start_ns=200, end_ns=100)


def test_the_summary_says_what_the_host_did() -> None:
    b = Builder()
    main = b.track("main")
    b.span("forward", 0, 100, main, "annotation")
    b.span("aten::linear", 10, 50, main)
    b.span("aten::addmm", 20, 30, main)
    table = critical_path_summary(b.build())
    assert table[["segment", "name", "total_ns"]].to_numpy().tolist() == [
        ["host", "forward", 50],
        ["host", "aten::addmm", 30],
        ["host", "aten::linear", 20],
    ]
    assert table["pct"].sum() == pytest.approx(100)


def test_kernels_without_launches_or_length_do_not_confuse_the_walk() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    b.span("a", 0, 10, main)
    for start in (20, 20, 30):
        b.span("zero", start, 0, one, "kernel")
    b.span("k", 30, 20, one, "kernel")
    b.span("k", 50, 20, one, "kernel")
    path = critical_path(b.build())
    assert path["dur_ns"].sum() == 70


@pytest.mark.parametrize("seed", range(30))
def test_any_trace_is_covered_exactly_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = Builder()
    threads = [b.track(f"thread {i}") for i in range(3)]
    streams = [b.stream(7), b.stream(8)]
    kinds = ["operator", "python", "runtime", "annotation"]
    names = ["aten::a", "cudaLaunchKernel", "cudaStreamSynchronize", "cudaStreamWaitEvent", "x"]
    for _ in range(60):
        b.span(
            str(rng.choice(names)),
            int(rng.integers(0, 500)),
            int(rng.integers(0, 80)),
            int(rng.choice(threads)),
            str(rng.choice(kinds)),
            correlation=int(rng.integers(-1, 30)),
        )
    for _ in range(40):
        b.span(
            "k",
            int(rng.integers(0, 600)),
            int(rng.integers(0, 40)),
            int(rng.choice(streams)),
            "kernel",
            correlation=int(rng.integers(-1, 30)),
        )
    trace = b.build()
    pieces = _pieces(trace)
    spans = trace.spans
    real = spans[host_activity(trace) | (spans["kind"] == "kernel").to_numpy()]
    assert pieces[0][2] == real["start_ns"].min()
    assert pieces[-1][3] == (real["start_ns"] + real["dur_ns"]).max()
    assert critical_path_summary(trace)["total_ns"].sum() == pieces[-1][3] - pieces[0][2]


def test_the_innermost_span_at_each_time() -> None:
    b = Builder()
    main = b.track("main")
    outer = b.span("outer", 0, 100, main)
    inner = b.span("inner", 10, 30, main)
    leaf = b.span("leaf", 20, 10, main)
    b.span("zero", 25, 0, main)
    last = b.span("last", 40, 60, main)
    trace = b.build()
    times, rows = innermost_line(trace, np.ones(5, bool))
    assert dict(zip(times.tolist(), rows.tolist(), strict=True)) == {
        0: outer,
        10: inner,
        20: leaf,
        30: inner,
        40: last,
        100: -1,
    }
    row, length = pieces_of((times, rows), np.array([5, 90]), np.array([15, 120]))
    assert list(zip(row.tolist(), length.tolist(), strict=True)) == [
        (outer, 5),
        (inner, 5),
        (last, 10),
        (-1, 20),
    ]
