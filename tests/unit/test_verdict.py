"""The verdict on captures of which the idle time, the leading kernel, the queue and the savings are known."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.answers.busy_bars import busy_bars
from torchtrt_viz.analysis.answers.judgement import judge
from torchtrt_viz.analysis.core.readable import engine_names, layer_name
from torchtrt_viz.analysis.table_order import table_order, table_shares
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.report.verdict.text import verdict_text
from torchtrt_viz.trace import Trace

MS = 1_000_000


def starved() -> Trace:
    """Ten steps of 1 ms: the host works for 0.9 ms, the device for 0.1 ms, 20 µs after the launch begins."""
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    for step in range(10):
        t = MS * step
        b.span("ProfilerStep", t, 900_000, main, "step", iteration=step)
        b.span("aten::work", t, 900_000, main)
        b.span("cudaLaunchKernel", t + 500_000, 10_000, main, "runtime", correlation=step + 1)
        b.span("gemm", t + 520_000, 100_000, gpu, "kernel", correlation=step + 1)
    return b.build()


def one(trace: Trace, kind: str) -> pd.Series:
    table = trace.verdict()
    found = table[table["kind"] == kind]
    assert len(found) == 1, table[["kind", "finding"]]
    return found.iloc[0]


def test_a_starved_device_could_save_its_idle_time() -> None:
    trace = starved()
    judged = judge(trace)
    assert judged.window_ns == 9_900_000
    assert (judged.steps, judged.steps_of) == (10, "steps")
    assert [(bar.label, bar.busy_ns) for bar in judged.bars] == [("HOST", 9_000_000), ("GPU", MS)]
    assert judged.bars[0].pct == pytest.approx(100 * 9.0 / 9.9)
    assert judged.bars[1].pct == pytest.approx(100 * 1.0 / 9.9)

    first = trace.verdict().iloc[0]
    assert first["kind"] == "idle"
    assert first["could_save_ns"] == 9 * 900_000
    assert first["could_save_pct"] == pytest.approx(100 * 8.1 / 9.9)
    assert "GPU 0 idle 8.1 ms, 100 % of it waiting for the host" in first["finding"]
    gaps = eval(first["frame"], {"trace": trace})
    assert int(gaps["dur_ns"].sum()) == 9 * 900_000
    # the nine late kernels and their launches prove it, and the timeline shows the longest gap
    rows = judged.findings[0].evidence.rows
    assert sorted(trace.spans["name"].iloc[rows].astype(str).value_counts().to_dict().items()) == [
        ("cudaLaunchKernel", 9),
        ("gemm", 9),
    ]
    assert first["start_ns"] <= 620_000
    assert first["end_ns"] >= 1_520_000


def test_the_leading_kernel_is_named_and_its_saving_is_not_known() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    for number, (name, dur) in enumerate([("gemm", 700), ("relu", 200), ("add", 100)]):
        b.span("cudaLaunchKernel", 10 * number, 5, main, "runtime", correlation=number + 1)
        b.span(name, 100 + 1000 * number, dur, gpu, "kernel", correlation=number + 1)
    found = one(b.build(), "kernel")
    assert found["finding"] == "kernel gemm: 70 % of the sum of GPU work"
    assert found["at_stake_ns"] == 700
    assert pd.isna(found["could_save_ns"])
    assert "roofline" in found["basis"]
    assert found["spans"] == 1


def test_noise_does_not_make_a_leader() -> None:
    b = Builder()
    gpu = b.stream(7)
    for number, name in enumerate(["a", "b"]):
        b.span(name, 1000 * number, 500 + number, gpu, "kernel")
    assert "kernel" not in set(b.build().verdict()["kind"])


def test_the_longest_launch_delay_has_its_operator_and_its_place_in_the_queue() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    for number in range(5):
        b.span("aten::mm", 100 * number, 90, main)
        b.span("cudaLaunchKernel", 100 * number + 10, 20, main, "runtime", correlation=number + 1)
        b.span(f"gemm_{number}", 40 + 1000 * number, 1000, gpu, "kernel", correlation=number + 1)
    trace = b.build()
    found = one(trace, "queueing")
    # the last launch returns at 430, its kernel begins at 4040, after the four before it
    assert found["at_stake_ns"] == 4040 - 430
    assert found["finding"] == "longest launch delay 3.61 µs: gemm_4, launched by aten::mm"
    assert "behind 4 pieces of work" in found["evidence"]
    assert "only less work for the device" in found["basis"]
    assert eval(found["frame"], {"trace": trace})["delay_ns"].iloc[0] == 3610


def test_waits_could_save_what_the_device_idles_after_them() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    for number in range(3):
        t = 1000 * number
        b.span("cudaLaunchKernel", t, 10, main, "runtime", correlation=number + 1)
        b.span("gemm", t + 20, 480, gpu, "kernel", correlation=number + 1)
        b.span("cudaDeviceSynchronize", t + 10, 500, main, "runtime")
    # the device runs dry at 500 and 1500, in a wait; the next work begins at 1020 and 2020
    found = one(b.build(), "waiting")
    assert found["could_save_ns"] == 2 * 520
    assert found["at_stake_ns"] == 3 * 500


def test_launches_could_save_their_time_while_the_device_idles() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    for number in range(20):
        t = 1000 * number
        b.span("cudaLaunchKernel", t, 600, main, "runtime", correlation=number + 1)
        b.span("tiny", t + 550, 50, gpu, "kernel", correlation=number + 1)
    # between the first work (550) and the last, each of 19 launches covers 550 ns of idle time
    assert one(b.build(), "launches")["could_save_ns"] == 19 * 550


def test_communication_and_copies_could_save_what_nothing_hides() -> None:
    b = Builder()
    one_stream, other = b.stream(7), b.stream(8)
    b.span("gemm", 0, 1000, one_stream, "kernel")
    b.span("ncclDevKernel_AllReduce", 800, 700, other, "kernel")  # 500 alone
    b.span("Memcpy HtoD", 1400, 300, one_stream, "memcpy")  # 200 alone
    trace = b.build()
    assert one(trace, "communication")["could_save_ns"] == 500
    assert one(trace, "copies")["could_save_ns"] == 200
    savings = trace.verdict()["could_save_ns"].dropna()
    assert savings.is_monotonic_decreasing


def test_slow_iterations_could_save_what_they_take_above_the_median() -> None:
    b = Builder()
    main = b.track("main")
    start = 0
    for run, dur in enumerate([1000] * 10 + [1600, 1000]):
        b.span("Method::execute", start, dur, main, "method", iteration=run)
        b.span("aten::mm", start, dur, main, iteration=run)
        start += dur
    found = one(b.build(), "variability")
    assert found["could_save_ns"] == 600
    assert found["spans"] == 1


def test_staging_could_save_its_phases() -> None:
    b = Builder()
    main = b.track("main")
    for run in range(5):
        t = 1000 * run
        b.span("Method::execute", t, 900, main, "method", iteration=run)
        b.span("DELEGATE_CALL", t + 10, 800, main, "delegate", run_id="trt@0")
        b.span("torchtrt.output_staging", t + 20, 600, main, "phase", run_id="trt@0")
    assert one(b.build(), "staging")["could_save_ns"] == 5 * 600


def test_nothing_rests_on_times_that_cannot_be_true() -> None:
    b = Builder()
    gpu = b.stream(7)
    b.span("gemm", 0, 1000, gpu, "kernel")
    b.span("relu", 1500, 100, gpu, "kernel")
    broken = b.span("stuck", 10, 10**12, gpu, "kernel", timing="implausible")
    judged = judge(b.build(warnings=[Repair("implausible", "one kernel outlasts the kernels after it")]))
    assert judged.window_ns == 1600
    assert judged.bars[1].busy_ns == 1100
    *others, doubt = judged.findings
    assert doubt.kind == "doubt"
    assert doubt.evidence.rows.tolist() == [broken]
    assert others
    assert not any(broken in finding.evidence.rows for finding in others)
    assert "1 span with times that cannot be true" in doubt.text


def test_a_trace_of_the_host_alone_has_no_bar_of_a_gpu() -> None:
    b = Builder()
    b.span("aten::mm", 0, 100, b.track("main"))
    _, bars = busy_bars(b.build())
    assert (bars[1].label, bars[1].pct, bars[1].busy_ns) == ("GPU", None, None)
    assert "no work of a GPU was recorded" in verdict_text(judge(b.build()))


def test_a_trace_without_anything_has_no_finding() -> None:
    b = Builder()
    b.track("main")
    trace = b.build()
    assert len(trace.verdict()) == 0
    assert "Nothing stands out" in repr(trace.verdict())
    with pytest.raises(OptionError, match="1 or more"):
        trace.verdict(top=0)


def test_at_most_as_many_as_asked_for_and_every_one_with_its_table() -> None:
    trace = starved()
    for top in (1, 2, 7):
        assert len(trace.verdict(top=top)) <= top
    for row in trace.verdict().itertuples():
        assert isinstance(eval(row.frame, {"trace": trace}), pd.DataFrame)


def test_the_frame_is_a_frame() -> None:
    table = starved().verdict()
    assert type(table.head(1)) is pd.DataFrame
    assert pickle.loads(pickle.dumps(table)).equals(table)
    assert [bar["label"] for bar in table.attrs["bars"]] == ["HOST", "GPU"]


def test_names_from_files_are_data_in_expressions() -> None:
    b = Builder()
    main = b.track("main")
    name = "x'] + __import__('os').system('true') #\"\n"
    for run in range(5):
        t = 1000 * run
        b.span("Method::execute", t, 900, main, "method", iteration=run)
        b.span("DELEGATE_CALL", t + 10, 800, main, "delegate", run_id=name)
        b.span("torchtrt.enqueue_host", t + 20, 600, main, "phase", run_id=name)
        for layer, dur in (("a", 400), ("b", 50), ("c", 50)):
            b.span(layer, t + 20, dur, main, "layer", run_id=name)
            t += dur
    trace = b.build()
    table = trace.verdict()
    assert {"delegate", "layer"} <= set(table["kind"])
    for row in table.itertuples():
        made = eval(row.frame, {"trace": trace, "__builtins__": {}})
        assert len(made), row.frame


def test_the_table_that_explains_most_comes_first() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    b.span("Method::execute", 0, 1000, main, "method", iteration=0)
    b.span("DELEGATE_CALL", 0, 900, main, "delegate", run_id="e")
    b.span("torchtrt.enqueue_host", 0, 880, main, "phase", run_id="e")
    b.span("layer_a", 0, 500, main, "layer", run_id="e")
    b.span("aten::add", 950, 10, main)
    host = table_order(b.build(), "report")
    assert host[:4] == ["layers", "phases", "delegates", "operators"]
    b.span("gemm", 0, 950, gpu, "kernel")
    trace = b.build()
    assert table_shares(trace)["kernels"] == pytest.approx(0.95)
    assert table_order(trace, "report")[:2] == ["kernels", "layers"]
    assert table_order(trace, "report")[-1] == "summary"


def test_readable_names() -> None:
    conv = "[CONVOLUTION]-[aten_ops.convolution.default]-[/stem/0/convolution]"
    relu = "[RELU]-[aten_ops.relu.default]-[/stem/2/relu]"
    assert layer_name(conv) == "stem/0/convolution"
    assert layer_name(f"{conv} + {relu}") == "stem/0/convolution + 1 fused"
    assert layer_name(f"{conv} [layer_0012_delegate]") == "stem/0/convolution #12"
    assert layer_name("sm80_xmma_gemm") == "sm80_xmma_gemm"
    first, second = "69d1c8df6f0a0af6-forward-0", "700c5203d558459f-forward-0"
    assert engine_names([first]) == {first: "forward-0"}
    assert set(engine_names([first, second]).values()) == {"forward-0 69d1c8", "forward-0 700c52"}
    modules = pd.DataFrame(
        {
            "engine": [first] * 3,
            "position": [1, 0, 2],
            "module": ["attention.project", "stem.0, stem.1", "(root)"],
        }
    )
    assert engine_names([first, np.nan], modules) == {first: "forward-0 (stem, attention)"}
