"""Findings in sentences: the numbers are those of the tables, and the largest thing comes first."""

from __future__ import annotations

import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.answers.findings import explain
from torchtrt_viz.errors import OptionError


def test_a_starved_gpu_is_the_first_finding() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    for step in range(10):
        t = 1_000_000 * step
        b.span("aten::work", t, 900_000, main)
        b.span("cudaLaunchKernel", t + 500_000, 10_000, main, "runtime", correlation=step + 1)
        b.span("gemm", t + 520_000, 100_000, gpu, "kernel", correlation=step + 1)
    table = explain(b.build())
    first = table.iloc[0]
    assert "GPU 0 was idle for 8.1 ms" in first["finding"]
    assert "the host had not launched" in first["finding"]
    assert first["impact_ns"] == 8_100_000
    assert first["impact_pct"] == pytest.approx(100 * 8.1 / 9.1)
    assert first["domain"] == "gpu"
    assert "idle_causes" in first["source"]


def test_a_slow_phase_of_a_delegate_is_named() -> None:
    b = Builder()
    main = b.track("main")
    for run in range(5):
        t = 1000 * run
        b.span("Method::execute", t, 900, main, "method", iteration=run)
        b.span("DELEGATE_CALL", t + 10, 800, main, "delegate", run_id="trt@0")
        b.span("torchtrt.output_staging", t + 20, 600, main, "phase", run_id="trt@0")
    table = explain(b.build())
    assert (
        "75 % of that time was spent in torchtrt.output_staging (staging of outputs)" in table["finding"][0]
    )
    assert table["impact_ns"][0] == 3000


def test_layers_of_little_weight_do_not_outrank_the_run() -> None:
    b = Builder()
    main = b.track("main")
    b.span("aten::mul", 0, 1_000_000, main)
    for start, name, dur in ((0, "a", 900), (900, "b", 50), (950, "c", 50)):
        b.span(name, 1_000_000 + start, dur, main, "layer", run_id="tiny")
    table = explain(b.build())
    assert table["finding"][0].startswith("aten::mul took 1 ms in 1 call: 100 %")
    assert not table["finding"].str.contains("tiny").any()


def test_warm_up_is_a_finding() -> None:
    b = Builder()
    main = b.track("main")
    start = 0
    for run, dur in enumerate((10_000, 1000, 1000, 1000, 1000, 1000)):
        b.span("Method::execute", start, dur, main, "method", iteration=run)
        start += dur + 10
    table = explain(b.build())
    assert (
        "The first 1 iteration of Method::execute took up to 10 µs, 10 times the median"
        in table["finding"][0]
    )
    assert table["impact_ns"][0] == 9000


def test_nothing_to_say_is_an_empty_table() -> None:
    b = Builder()
    b.track("main")
    assert len(explain(b.build())) == 0
    assert "remedy" in explain(b.build()).columns
    with pytest.raises(OptionError, match="1 or more"):
        explain(b.build(), top=0)


def test_at_most_as_many_as_asked_for() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    b.span("cudaDeviceSynchronize", 0, 1000, main, "runtime")
    b.span("ncclDevKernel_AllReduce", 0, 300, gpu, "kernel")
    b.span("Memcpy HtoD", 400, 300, gpu, "memcpy")
    b.span("gemm", 800, 100, gpu, "kernel")
    assert len(explain(b.build(), top=2)) == 2
    found = explain(b.build(), top=10)
    assert len(found) >= 4
    assert found["impact_ns"].is_monotonic_decreasing
