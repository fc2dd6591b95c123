"""The six questions and the summary, on captures that hold all of it, some of it, and nothing."""

from __future__ import annotations

import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.answers.capture_summary import summary
from torchtrt_viz.analysis.answers.six_questions import QUESTIONS, questions
from torchtrt_viz.analysis.core.humanize import count, duration, listing, share, size
from torchtrt_viz.analysis.engine.origins import provenance
from torchtrt_viz.formats.engine.info import BINDINGS, LAYERS, EngineInfo
from torchtrt_viz.trace import Trace


def _whole() -> Trace:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    mapped = {
        "backend": "TensorRTBackend",
        "op_types": ["aten.mm"],
        "module": "net.head",
        "source": "net.py:7",
    }
    b.span("Method::execute", 0, 1_000_000, main, "method", iteration=0)
    b.span("DELEGATE_CALL", 100_000, 400_000, main, "delegate", run_id="trt_0", args=mapped)
    b.span("torchtrt.input_binding", 110_000, 100_000, main, "phase", run_id="trt_0")
    b.span("torchtrt.enqueue_host", 220_000, 200_000, main, "phase", run_id="trt_0")
    b.span("conv", 230_000, 120_000, main, "layer", run_id="trt_0", args=mapped)
    b.span("relu", 350_000, 40_000, main, "layer", run_id="trt_0", args=mapped)
    b.span("native_call_add.out", 600_000, 100_000, main, "operator", args=mapped)
    b.span("Memcpy HtoD", 90_000, 30_000, gpu, "memcpy")
    return b.build()


def test_a_whole_capture_answers_all_six() -> None:
    table = questions(_whole())
    assert table["question"].tolist() == list(QUESTIONS)
    assert table["measured"].tolist() == ["yes"] * 6
    assert (table["missing"] == "").all()
    assert (table["how"] == "").all()
    assert (table["source"] != "").all()
    ran, host, phases, layers, between, graph = table["answer"]
    assert "1 delegate ran: trt_0 (TensorRTBackend), 1 call" in ran
    assert "400 µs in the median" in host
    assert "enqueue_host 200 µs (50 %)" in phases
    assert "input_binding 100 µs (25 %)" in phases
    assert "outside phases 100 µs (25 %)" in phases
    assert "conv 75 %, relu 25 %" in layers
    assert "host time" in layers
    assert "600 µs (60 %) lie outside delegates: operators 100 µs, orchestration 500 µs" in between
    assert "30 µs" in between
    assert "graph operators for 1 of 1 delegate calls (such as aten.mm)" in graph
    values = table["values"]
    assert values[1]["trt_0"] == {
        "calls": 1,
        "total_ns": 400_000,
        "mean_ns": 400_000.0,
        "median_ns": 400_000.0,
    }
    assert values[3]["trt_0"]["conv"] == {"total_ns": 120_000, "pct": 75.0}
    assert values[4]["orchestration_ns"] == 500_000
    assert values[4]["gpu_copy_ns"] == 30_000


def test_nothing_measured_says_so_and_how_to_measure_it() -> None:
    b = Builder()
    b.span("aten::add", 0, 10, b.track("main"))
    table = questions(b.build())
    assert table["measured"].tolist() == ["no"] * 6
    assert (table["missing"] != "").all()
    assert (table["how"] != "").all()
    assert not any("0 ns" in answer for answer in table["answer"]), "what was not measured is not 0"


def test_a_program_that_calls_no_delegate_is_told_so() -> None:
    b = Builder()
    main = b.track("main")
    b.span("Method::execute", 0, 100, main, "method", args={"source": "m.py:1"})
    b.span("native_call_add.out", 10, 40, main, args={"source": "m.py:1"})
    table = questions(b.build())
    assert table["measured"].tolist()[:4] == ["yes"] * 4
    assert "No delegate ran in 1 execution" in table["answer"][0]
    assert table["values"][1] == {"calls": 0}
    assert "operators 40 ns, orchestration 60 ns" in table["answer"][4]


def test_an_engine_profile_answers_what_it_can() -> None:
    b = Builder()
    gpu = b.track("engine", "engine", "gpu")
    b.span("conv", None, 3_000_000, gpu, "layer", run_id="resnet", args={"count": 10})
    frame = LAYERS.frame({"name": ["conv"], "count": pd.array([10], dtype="Int64"), "span": [0]}, 1)
    info = EngineInfo(
        "resnet",
        "resnet",
        frame,
        BINDINGS.frame({}, 0),
        performance={"enqueue_ms": {"mean": 0.25, "max": 1.0}},
    )
    table = questions(b.build(engines=[info]))
    assert table["measured"].tolist() == ["partly", "partly", "no", "yes", "no", "no"]
    assert "launch overhead, not the engine's time" in table["answer"][1]
    assert "250 µs" in table["answer"][1]
    assert table["values"][1] == {"resnet": {"mean": 250_000.0, "max": 1_000_000.0}}
    assert "conv 100 %" in table["answer"][3]
    assert "gpu time" in table["answer"][3]


def test_a_torch_profile_knows_engines_by_their_operator() -> None:
    b = Builder()
    main = b.track("main")
    b.span("model.py(9): forward", 0, 1000, main, "python")
    b.span("tensorrt::execute_engine", 10, 500, main)
    b.span("aten::add", 600, 100, main)
    table = questions(b.build())
    assert "tensorrt::execute_engine, 1 call" in table["answer"][0]
    assert table["measured"][0] == "partly"
    assert table["measured"][1] == "yes"
    assert table["values"][1]["tensorrt::execute_engine"]["total_ns"] == 500
    assert "source lines for 2 of 2 operators (such as model.py(9): forward)" in table["answer"][5]


def test_a_delegate_without_phases_among_others_makes_the_answer_partial() -> None:
    b = Builder()
    main = b.track("main")
    for start, name, backend in (
        (0, "trt_0", "TensorRTBackend"),
        (100, "trt_1", "TensorRTBackend"),
        (200, "x", "Xnnpack"),
    ):
        b.span("DELEGATE_CALL", start, 50, main, "delegate", run_id=name, args={"backend": backend})
    b.span("torchtrt.enqueue_host", 10, 10, main, "phase", run_id="trt_0")
    answer = questions(b.build()).iloc[2]
    assert answer["measured"] == "partly"
    assert "trt_1" in answer["missing"]
    assert "x" not in answer["missing"].split()


def test_provenance_counts_different_events_once() -> None:
    b = Builder()
    main = b.track("main")
    for i in range(5):
        b.span("add", 10 * i, 5, main, args={"source": "a.py:1"} if i == 0 else {})
    b.span("mul", 100, 5, main)
    table = provenance(b.build())
    row = table[(table["of"] == "operators") & (table["what"] == "source lines")].iloc[0]
    assert (row["events"], row["known"], row["example"]) == (2, 1, "a.py:1")


def test_summary_keeps_host_and_gpu_apart() -> None:
    table = summary(_whole()).set_index(["section", "item"])["value"]
    assert table["capture", "length"] == 1_000_000
    assert table["capture", "spans"] == 8
    assert table["host", "time in methods"] == 1_000_000
    assert table["host", "calls of operators"] == 1
    assert table["delegates", "host time in calls"] == 400_000
    assert table["gpu", "busy time of device 0"] == 30_000
    assert table["engines", "layers timed"] == 2
    assert table["capture", "aggregate records"] is pd.NA
    assert table["warnings", "repairs and doubts"] == 0
    b = Builder()
    b.track("main")
    empty = summary(b.build()).set_index(["section", "item"])["value"]
    assert empty["gpu", "busy time"] is pd.NA
    assert empty["host", "threads"] is pd.NA


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1500, "1.5 µs"),
        (2_340_000, "2.34 ms"),
        (61e9, "61 s"),
        (None, "an unknown time"),
    ],
)
def test_durations_in_words(ns: float | None, text: str) -> None:
    assert duration(ns) == text


def test_other_words() -> None:
    assert size(1_500_000) == "1.5 MB"
    assert size(None) == "an unknown size"
    assert share(1, 3) == "33.3 %"
    assert share(1, 0) == "an unknown share"
    assert count(1, "call") == "1 call"
    assert count(1200, "copy", "copies") == "1,200 copies"
    assert listing(["a", "b", "c", "d"]) == "a; b; c; and 1 more"
