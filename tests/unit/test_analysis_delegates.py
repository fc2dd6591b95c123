"""Delegates, phases and layers of traces whose numbers are worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED, delegates, phases
from torchtrt_viz.analysis.engine.gaps import delegate_gaps, orchestration
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.formats.engine.info import BINDINGS, LAYERS, EngineInfo
from torchtrt_viz.trace import Trace


def _program(runtime: str | None = None) -> Trace:
    """Build two executions of a method that calls one TensorRT delegate and one XNNPACK delegate."""
    b = Builder()
    main = b.track("main")
    for call in range(2):
        t = 1000 * call
        b.span("Method::execute", t, 600, main, "method", iteration=call)
        details = {"backend": "TensorRTBackend", "method": "forward", "op_types": ["aten.mm", "aten.relu"]}
        if runtime:
            details["metadata"] = {"engine_runtime": runtime}
        trt = {"run_id": "trt_0", "iteration": call}
        b.span("DELEGATE_CALL", t + 10, 310, main, "delegate", **trt, args=details)
        b.span("torchtrt.delegate", t + 20, 290, main, "delegate", **trt)
        b.span("torchtrt.input_binding", t + 30, 40, main, "phase", **trt)
        b.span("torchtrt.enqueue_host", t + 80, 100 + 20 * call, main, "phase", **trt)
        b.span("torchtrt.synchronize", t + 220, 60, main, "phase", **trt)
        b.span("conv", t + 90, 50, main, "layer", **trt)
        b.span("relu", t + 140, 30, main, "layer", **trt)
        b.span(
            "DELEGATE_CALL",
            t + 400,
            100,
            main,
            "delegate",
            run_id="xnn_1",
            args={"backend": "XnnpackBackend"},
        )
    return b.build()


def test_one_row_per_delegate_instance() -> None:
    table = delegates(_program()).set_index("delegate")
    trt, xnn = table.loc["trt_0"], table.loc["xnn_1"]
    assert (trt["backend"], xnn["backend"]) == ("TensorRTBackend", "XnnpackBackend")
    assert trt["method"] == "forward"
    assert trt["calls"] == 2, "the delegate's own event inside the call is not another call"
    assert trt["host_total_ns"] == 620
    assert trt["host_mean_ns"] == 310
    assert trt["host_pct"] == pytest.approx(100 * 620 / 1200)
    assert trt["phases_ns"] == (40 + 100 + 60) + (40 + 120 + 60)
    assert trt["unattributed_ns"] == 620 - 420
    assert trt["launch_overhead_ns"] == 220
    assert trt["layers_ns"] == 160
    assert trt["layers_domain"] == "host"
    assert trt["gpu_ns"] is pd.NA
    assert trt["op_types"] == "aten.mm, aten.relu"
    for name in ("phases_ns", "unattributed_ns", "launch_overhead_ns", "layers_ns"):
        assert xnn[name] is pd.NA, "what was not recorded is missing, not 0"


def test_phases_come_in_order_and_sum_to_the_whole() -> None:
    table = phases(_program())
    assert table["phase"].tolist() == [
        "torchtrt.input_binding",
        "torchtrt.enqueue_host",
        "torchtrt.synchronize",
        UNATTRIBUTED,
    ]
    assert table["total_ns"].tolist() == [80, 220, 120, 200]
    assert table["calls"].tolist() == [2, 2, 2, 2]
    assert table["mean_ns"].tolist() == [40, 110, 60, 100]
    assert table["pct"].sum() == pytest.approx(100)
    assert set(table["domain"]) == {"host"}
    assert table["role"][1] == "launch overhead"
    assert len(phases(_program(), rest=False)) == 3


def test_an_enqueue_on_the_host_engine_is_called_what_it_is() -> None:
    table = phases(_program("host"))
    assert table["role"][1].startswith("execution on the host engine")
    row = delegates(_program("host")).set_index("delegate").loc["trt_0"]
    assert row["engine_runtime"] == "host"
    assert row["launch_overhead_ns"] == 220 - 160, "what the layers did is no overhead"


def test_gpu_time_of_a_delegate_stays_out_of_its_host_columns() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.track("engine", "engine", "gpu")
    b.span("DELEGATE_CALL", 0, 100, main, "delegate", run_id="trt_0")
    b.span("torchtrt.enqueue_host", 10, 20, main, "phase", run_id="trt_0")
    b.span("engine execution", 50, 900, gpu, "kernel", run_id="trt_0")
    b.span("conv", None, 700, gpu, "layer", run_id="trt_0")
    row = delegates(b.build()).iloc[0]
    assert row["host_total_ns"] == 100
    assert row["gpu_ns"] == 900
    assert row["layers_ns"] == 700
    assert row["layers_domain"] == "gpu"
    assert row["unattributed_ns"] == 80


def test_delegates_without_instances_are_known_by_name() -> None:
    b = Builder()
    main = b.track("main")
    b.span("CudaBackend", 0, 10, main, "delegate")
    assert delegates(b.build())["delegate"].tolist() == ["CudaBackend"]
    assert len(phases(b.build())) == 0


def test_layers_of_spans() -> None:
    table = layers(_program(), sort=None)
    assert table["name"].tolist() == ["conv", "relu"]
    assert table["total_ns"].tolist() == [100, 60]
    assert table["mean_ns"].tolist() == [50, 30]
    assert table["calls"].tolist() == [2, 2]
    assert table["pct"].sum() == pytest.approx(100)
    assert table["timing"].tolist() == ["measured", "measured"]
    assert table["domain"].tolist() == ["host", "host"]
    assert table["type"].isna().all()


def _described(count: int | None) -> Trace:
    b = Builder()
    gpu = b.track("engine", "engine", "gpu")
    for name, total in (("conv", 3_000_000), ("relu", 1_000_000)):
        b.span(name, None, total, gpu, "layer", run_id="e", args={"count": count})
    frame = LAYERS.frame(
        {
            "name": ["conv", "constant", "relu"],
            "type": ["CaskConvolution", "Constant", "PointWise"],
            "precision": ["FP16", None, "FP16"],
            "count": pd.array([count, None, count], dtype="Int64"),
            "total_ms": pd.array([3.0, None, 1.0], dtype="Float64"),
            "in_bytes": pd.array([100, None, 40], dtype="Int64"),
            "span": [0, -1, 1],
        },
        3,
    )
    return b.build(engines=[EngineInfo("e", "e", frame, BINDINGS.frame({}, 0))])


def test_descriptions_add_facts_and_untimed_layers() -> None:
    table = layers(_described(10), sort=None)
    assert table["name"].tolist() == ["conv", "constant", "relu"]
    assert table["type"].tolist() == ["CaskConvolution", "Constant", "PointWise"]
    assert table["timing"].isna().tolist() == [False, True, False]
    assert table["total_ns"][0] == 3_000_000
    assert table["total_ns"][1] is pd.NA
    assert table["mean_ns"][0] == 300_000
    assert table["calls"].to_list() == [10, pd.NA, 10]
    assert table["pct"][0] == pytest.approx(75)
    assert table["in_bytes"].to_list() == [100, pd.NA, 40]
    assert set(table["engine_runtime"]) == {"tensorrt"}
    assert layers(_described(10), untimed=False)["name"].tolist() == ["conv", "relu"]
    assert len(layers(_described(10), engine="other")) == 0


def test_an_unknown_number_of_calls_leaves_the_mean_unknown() -> None:
    table = layers(_described(None), sort=None)
    assert table["total_ns"].to_list() == [3_000_000, pd.NA, 1_000_000]
    assert table["calls"].isna().all()
    assert table["mean_ns"].isna().all()
    assert table["pct"][2] == pytest.approx(25)


def test_measured_layers_meet_a_description_by_name_and_none_is_lost() -> None:
    b = Builder()
    main = b.track("main")
    for start, name in ((0, "conv"), (10, "relu"), (20, "reformat")):
        b.span(name, start, 10, main, "layer", run_id="e")
    frame = LAYERS.frame({"name": ["conv", "relu"], "type": ["Conv", "PointWise"]}, 2)
    table = layers(
        b.build(engines=[EngineInfo("e", "e", frame, BINDINGS.frame({}, 0), runtime="host")]), sort=None
    )
    assert sorted(table["name"]) == ["conv", "reformat", "relu"]
    assert table.set_index("name")["total_ns"].to_dict() == {"conv": 10, "relu": 10, "reformat": 10}
    assert table.set_index("name").loc["conv", "type"] == "Conv"


def test_zero_time_makes_shares_unknown_instead_of_infinite() -> None:
    b = Builder()
    gpu = b.track("engine", "engine", "gpu")
    b.span("conv", None, 0, gpu, "layer", run_id="e")
    assert layers(b.build())["pct"].isna().all()


def test_nothing_recorded_gives_empty_tables() -> None:
    b = Builder()
    b.span("add", 0, 1, b.track("main"))
    for table in (delegates(b.build()), phases(b.build()), layers(b.build())):
        assert len(table) == 0
        assert len(table.columns) > 5


def _gappy() -> Trace:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    b.span("Method::execute", 0, 1000, main, "method", iteration=0)
    b.span("a", 100, 200, main, "delegate", run_id="a")
    b.span("add", 350, 100, main, "operator")
    b.span("b", 500, 300, main, "delegate", run_id="b")
    b.span("mul", 520, 50, main, "operator")
    b.span("Memcpy DtoD", 290, 40, gpu, "memcpy")
    return b.build()


def test_gaps_between_delegates() -> None:
    table = delegate_gaps(_gappy())
    assert table[["after", "before"]].to_numpy().tolist() == [["(start)", "a"], ["a", "b"], ["b", "(end)"]]
    assert table["dur_ns"].tolist() == [100, 200, 200]
    assert table["operators_ns"].tolist() == [0, 100, 0]
    assert table["other_ns"].tolist() == [100, 100, 200]
    assert table["gpu_copy_ns"].to_list() == [0, 30, 0]
    assert table["iteration"].tolist() == [0, 0, 0]


def test_orchestration_divides_the_method() -> None:
    table = orchestration(_gappy()).set_index("part")
    assert table["total_ns"].to_dict() == {"delegates": 500, "operators": 100, "orchestration": 400}
    assert table["pct"].sum() == pytest.approx(100)


def test_calls_outside_methods_have_gaps_only_between_them() -> None:
    b = Builder()
    main, other = b.track("main"), b.track("worker")
    b.span("a", 0, 10, main, "delegate", run_id="a")
    b.span("b", 30, 10, main, "delegate", run_id="b")
    b.span("c", 12, 5, other, "delegate", run_id="c")
    table = delegate_gaps(b.build())
    assert table[["after", "before", "dur_ns"]].to_numpy().tolist() == [["a", "b", 20]]
    assert table["method_row"].isna().all()
    assert table["iteration"].isna().all()
    assert table["gpu_copy_ns"].isna().all()
    assert len(orchestration(b.build())) == 0
