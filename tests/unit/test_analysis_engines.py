"""Roofline, lint, conversions, comparison and graph of engines written down layer by layer."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.device.device_specs import Device
from torchtrt_viz.analysis.engine.diff import engine_diff
from torchtrt_viz.analysis.engine.lint import engine_lint, reformats
from torchtrt_viz.analysis.engine.plan import plan_graph
from torchtrt_viz.analysis.engine.roofline import engine_roofline, multiplications, uses_tensor_cores
from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.engine.info import BINDINGS, LAYERS, EngineInfo, Tensor
from torchtrt_viz.trace import Trace

_SIZES = {"FP32": 4, "FP16": 2, "INT8": 1}


def _tensor(
    name: str, shape: tuple[int, ...] | None, dtype: str = "FP16", format: str | None = None
) -> Tensor:
    size = None
    if shape is not None and all(s >= 0 for s in shape):
        size = _SIZES[dtype]
        for s in shape:
            size *= s
    return Tensor(name, shape, dtype, format, None, size)


def _layer(
    name: str, type: str, inputs: list[Tensor], outputs: list[Tensor], ms: float | None = 1.0, **facts: Any
) -> dict[str, Any]:
    def total(tensors: list[Tensor]) -> Any:
        return pd.NA if any(t.bytes is None for t in tensors) else sum(t.bytes or 0 for t in tensors)

    return {
        "name": name,
        "type": type,
        "inputs": tuple(inputs),
        "outputs": tuple(outputs),
        "in_bytes": total(inputs),
        "out_bytes": total(outputs),
        "in_dtypes": ", ".join(dict.fromkeys(str(t.dtype) for t in inputs)),
        "out_dtypes": ", ".join(dict.fromkeys(str(t.dtype) for t in outputs)),
        "out_shapes": "; ".join("x".join(map(str, t.shape or ())) for t in outputs),
        "role": facts.pop("role", "compute"),
        "precision": facts.pop("precision", "FP16"),
        "average_ms": ms,
        "count": 1,
        "attributes": facts.pop("attributes", {}),
        "operators": facts.pop("operators", ()),
        **facts,
    }


def _trace(rows: list[dict[str, Any]], bindings: list[tuple[str, str]] = (), **info: Any) -> Trace:  # type: ignore[assignment]
    b = Builder()
    gpu = b.track("engine", "engine", "gpu")
    for at, row in enumerate(rows):
        row["span"] = -1
        if row["average_ms"] is not None:
            row["span"] = b.span(row["name"], None, int(row["average_ms"] * 1e6), gpu, "layer", run_id="e")
        assert at >= 0
    columns = {}
    for column in LAYERS.columns:
        values = [row.get(column.name, column.default) for row in rows]
        if column.dtype in ("Int64", "Float64"):
            values = pd.array([pd.NA if v is None else v for v in values], dtype=column.dtype)
        elif column.dtype == "string":
            values = [None if v is None else str(v) for v in values]
        elif column.dtype == "object":
            array = pd.Series([None] * len(rows), dtype=object)
            for position, value in enumerate(values):
                array[position] = value
            values = array.to_numpy()
        columns[column.name] = values
    frame = LAYERS.frame(columns, len(rows))
    edges = BINDINGS.frame(
        {"name": [n for n, _ in bindings], "direction": [d for _, d in bindings]}, len(bindings)
    )
    return b.build(engines=[EngineInfo("e", "e", frame, edges, **info)])


_CONV = {
    "ParameterType": "Convolution",
    "Kernel": [3, 3],
    "Stride": [1, 1],
    "PrePadding": [1, 1],
    "PostPadding": [1, 1],
    "Dilation": [1, 1],
    "OutMaps": 16,
    "Groups": 1,
}


def _conv(name: str = "conv", **facts: Any) -> dict[str, Any]:
    facts.setdefault("attributes", dict(_CONV))
    facts.setdefault("weights_bytes", 16 * 8 * 9 * 2)
    facts.setdefault("weights_count", 16 * 8 * 9)
    return _layer(
        name, "CaskConvolution", [_tensor("x", (1, 8, 10, 10))], [_tensor("y", (1, 16, 10, 10))], **facts
    )


def _macs(row: dict[str, Any]) -> int | None:
    found = _trace([row]).meta["engines"][0].layers
    return multiplications(next(found.itertuples(index=False)))


def test_multiplications_of_convolutions() -> None:
    assert _macs(_conv()) == 16 * 100 * 8 * 9
    grouped = {**_CONV, "Groups": 4}
    assert _macs(_conv(attributes=grouped)) == 16 * 100 * 2 * 9
    fused = {"ParameterType": "ConvActPool"} | {f"Conv{key}": value for key, value in _CONV.items()}
    fused["PoolingStride"] = [2, 2]
    pooled = _layer(
        "c", "ConvActPool", [_tensor("x", (1, 8, 10, 10))], [_tensor("y", (1, 16, 5, 5))], attributes=fused
    )
    assert _macs(pooled) == 16 * 100 * 8 * 9, "the pooling's output is smaller than the convolution's"


def test_multiplications_of_matrix_products() -> None:
    a, b = _tensor("a", (4, 32)), _tensor("b", (32, 10))
    assert _macs(_layer("g", "gemm", [a, b], [_tensor("y", (4, 10))])) == 4 * 10 * 32
    turned = {"ParameterType": "MatrixMultiply", "OpA": "kTRANSPOSE"}
    product = _layer(
        "m", "MatrixMultiply", [_tensor("a", (32, 4)), b], [_tensor("y", (4, 10))], attributes=turned
    )
    assert _macs(product) == 4 * 10 * 32
    assert _macs(_layer("g", "gemm", [_tensor("a", (4, 33)), b], [_tensor("y", (4, 10))])) is None


def test_unknown_work_is_unknown() -> None:
    assert (
        _macs(_layer("p", "CaskPooling", [_tensor("x", (1, 8, 4, 4))], [_tensor("y", (1, 8, 2, 2))])) is None
    )
    dynamic = _layer(
        "c",
        "CaskConvolution",
        [_tensor("x", (-1, 8, 10, 10))],
        [_tensor("y", (-1, 16, 10, 10))],
        attributes=dict(_CONV),
    )
    assert _macs(dynamic) is None


@pytest.mark.parametrize(
    ("tactic", "expected"),
    [
        (
            "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize64x64x64_tensor16x8x16",
            True,
        ),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc", True),
        ("sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs", True),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs", False),
        ("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", False),
        ("sm50_xmma_cublas_gemvx_f16f16_f32_f32_tn_n_int32", False),
        ("sm70_xmma_gemm_as_conv1x1_f16f16_f16_f16_tn_n_simt_small_batch_bias_relu", False),
        ("somebody_elses_kernel", None),
        (None, None),
    ],
)
def test_tensor_cores_by_the_kernels_name(tactic: str | None, expected: bool | None) -> None:
    assert uses_tensor_cores(tactic) is expected


def test_roofline_of_an_engine() -> None:
    device = Device("toy", 100.0, {"fp16": 1.0})
    rows = [
        _conv(ms=0.001, tactic="x_tensor16x8x16"),
        _layer(
            "pool", "CaskPooling", [_tensor("y", (1, 16, 10, 10))], [_tensor("z", (1, 16, 5, 5))], ms=0.002
        ),
        _layer("dyn", "CaskPooling", [_tensor("z", (-1, 16))], [_tensor("w", (-1, 16))], ms=None),
    ]
    table = engine_roofline(_trace(rows), device=device).set_index("name")
    conv = table.loc["conv"]
    moved = 1600 + 3200 + 2304
    assert conv["macs"] == 115_200
    assert conv["bytes"] == moved
    assert conv["intensity"] == pytest.approx(230_400 / moved)
    assert conv["tflops"] == pytest.approx(230_400 / 1e-6 / 1e12)
    assert conv["gbps"] == pytest.approx(moved / 1e-6 / 1e9)
    assert conv["bound"] == "compute"
    assert conv["roof_tflops"] == pytest.approx(1.0)
    assert conv["efficiency_pct"] == pytest.approx(23.04)
    pool = table.loc["pool"]
    assert pool["macs"] is pd.NA
    assert pool["bound"] == "memory"
    assert pool["efficiency_pct"] == pytest.approx(100 * (3200 + 800) / 2000 / 100)
    assert table.loc["dyn", "bytes"] is pd.NA
    assert table.loc["dyn", "mean_ns"] is pd.NA
    bare = engine_roofline(_trace(rows)).set_index("name")
    assert bare.loc["conv", "roof_tflops"] is pd.NA
    assert len(engine_roofline(Builder().build())) == 0


def test_lint_names_the_layer_the_fact_and_the_remedy() -> None:
    rows = [
        _conv("odd", attributes=dict(_CONV), tactic="sm80_simt_thing"),
        _layer(
            "odd channels",
            "CaskConvolution",
            [_tensor("x", (1, 3, 8, 8))],
            [_tensor("y", (1, 12, 8, 8))],
            attributes={**_CONV, "OutMaps": 12},
        ),
        _layer(
            "q",
            "CaskConvolution",
            [_tensor("x", (1, 16, 8, 8), "INT8")],
            [_tensor("y", (1, 16, 8, 8), "FP16")],
            precision="INT8",
            attributes=dict(_CONV),
        ),
        _layer(
            "to int8",
            "Reformat",
            [_tensor("a", (1, 8), "FP32")],
            [_tensor("b", (1, 8), "INT8")],
            role="reformat",
        ),
        _layer(
            "free", "NoOp", [_tensor("a", (1, 8), "FP32")], [_tensor("b", (1, 8), "INT8")], role="reformat"
        ),
        _layer("scale", "Scale", [_tensor("a", (1, 8))], [_tensor("b", (1, 8))]),
        _layer(
            "cut",
            "Slice",
            [_tensor("a", (8, 8))],
            [_tensor("b", (4, 8))],
            attributes={"ParameterType": "Slice", "Stride": [2, 1]},
        ),
        _layer(
            "{ForeignNode[a...b]}",
            "Myelin",
            [_tensor("a", (8, 8))],
            [_tensor("b", (4, 8))],
            role="region",
            ms=9.0,
        ),
    ]
    table = engine_lint(_trace(rows))
    found = {(row.layer, row.rule) for row in table.itertuples(index=False)}
    assert found == {
        ("odd", "tensor cores"),
        ("odd channels", "alignment"),
        ("q", "mixed precision"),
        ("to int8", "conversion"),
        ("scale", "loose quantisation"),
        ("cut", "strided slice"),
        ("{ForeignNode[a...b]}", "opaque region"),
    }
    assert table["layer"][0] == "{ForeignNode[a...b]}", "the most time at stake comes first"
    assert "3 input channels in FP16, not a multiple of 8" in set(table["finding"])
    assert "12 output channels in FP16, not a multiple of 8" in set(table["finding"])
    assert (table["remedy"] != "").all()
    assert len(engine_lint(_trace([_conv(tactic="x_tensor16x8x16")]))) == 0


def test_names_only_engines_are_told_how_to_get_more() -> None:
    rows = [_layer("a", "", [], [], role="unknown")]
    table = engine_lint(_trace(rows, verbosity="layer_names_only"))
    assert table["rule"].tolist() == ["no names"]
    assert "detailed" in table["remedy"][0]


def test_conversions_and_their_cost() -> None:
    rows = [
        _layer(
            "r",
            "Reformat",
            [_tensor("a", (1, 8), "FP32", "Row major linear FP32")],
            [_tensor("b", (1, 8), "FP16", "Channel major FP16 format where channel % 8 == 0")],
            ms=3.0,
            role="reformat",
            attributes={"Origin": "REFORMAT"},
            operators=("conv1",),
        ),
        _layer(
            "l",
            "Reformat",
            [_tensor("a", (1, 8), "FP16", "Row major linear FP16")],
            [_tensor("b", (1, 8), "FP16", "Channel major FP16 format")],
            ms=None,
            role="reformat",
        ),
        _conv(),
    ]
    table = reformats(_trace(rows)).set_index("name")
    assert table.loc["r", "converts"] == "precision and layout"
    assert table.loc["r", "bytes"] == 32 + 16
    assert table.loc["r", "pct"] == pytest.approx(75)
    assert table.loc["r", "origin"] == "REFORMAT"
    assert table.loc["r", "serves"] == "conv1"
    assert table.loc["l", "converts"] == "layout"
    assert table.loc["l", "mean_ns"] is pd.NA


def test_two_engines_align_by_operators_names_and_place() -> None:
    x, y = _tensor("x", (1, 8, 4, 4)), _tensor("y", (1, 8, 4, 4))
    a = [
        _layer(
            "conv1 + relu1",
            "CaskConvolution",
            [x],
            [y],
            ms=2.0,
            operators=("net.conv1", "relu1"),
            tactic="t1",
        ),
        _layer("pool_a", "CaskPooling", [y], [x], ms=1.0, operators=()),
        _layer("fc", "gemm", [x], [y], ms=4.0, operators=("net.fc",)),
        _layer("act", "PointWise", [x], [y], ms=1.0, operators=("net.act",)),
        _layer("gone", "Softmax", [x], [x], ms=0.5, operators=("net.gone",)),
    ]
    b = [
        _layer("new", "Reformat", [x], [y], ms=0.25, role="reformat"),
        _layer("conv1", "CaskConvolution", [x], [y], ms=1.0, operators=("net.conv1",), tactic="t2"),
        _layer("relu", "PointWise", [x], [y], ms=0.5, operators=("relu1",)),
        _layer("pool_b", "CaskPooling", [y], [x], ms=1.0),
        _layer("fc + act", "gemm", [x], [y], ms=4.0, operators=("net.fc", "net.act")),
    ]
    table = engine_diff(_trace(a), _trace(b))
    rows = {
        ("" if pd.isna(r.a) else r.a, "" if pd.isna(r.b) else r.b): r for r in table.itertuples(index=False)
    }
    assert rows["conv1 + relu1", "conv1 | relu"].status == "split"
    assert rows["conv1 + relu1", "conv1 | relu"].b_ns == pytest.approx(1.5e6)
    assert rows["conv1 + relu1", "conv1 | relu"].speedup == pytest.approx(2 / 1.5)
    assert "tactic: t1 -> t2 | ?" in rows["conv1 + relu1", "conv1 | relu"].changes
    assert rows["pool_a", "pool_b"].matched_by == "place"
    assert rows["pool_a", "pool_b"].status == "same"
    assert rows["fc | act", "fc + act"].status == "fused"
    assert rows["gone", ""].status == "removed"
    assert rows["gone", ""].delta_ns == pytest.approx(-0.5e6)
    assert rows["", "new"].status == "added"
    assert rows["", "new"].a_position is pd.NA
    total_a, total_b = sum(row["average_ms"] for row in a), sum(row["average_ms"] for row in b)
    assert table["delta_ns"].sum() == pytest.approx((total_b - total_a) * 1e6)


def test_numbers_that_a_compiler_gives_anew_do_not_join_strangers() -> None:
    x = _tensor("x", (1, 8))
    a = [
        _layer("one", "Conv", [x], [x], operators=("w1.weight", "QuantizeLinear_7")),
        _layer("two", "Conv", [x], [x], operators=("w2.weight", "QuantizeLinear_9")),
    ]
    b = [
        _layer("one", "Conv", [x], [x], operators=("w1.weight", "QuantizeLinear_9")),
        _layer("two", "Conv", [x], [x], operators=("w2.weight", "QuantizeLinear_11")),
    ]
    table = engine_diff(_trace(a), _trace(b))
    assert table[["a", "b"]].to_numpy().tolist() == [["one", "one"], ["two", "two"]]


def test_engines_have_to_be_there() -> None:
    with pytest.raises(OptionError, match="describes no engine"):
        engine_diff(Builder().build(), _trace([_conv()]))
    with pytest.raises(OptionError, match="it has none"):
        plan_graph(Builder().build())
    with pytest.raises(OptionError, match=r"\(e\)"):
        plan_graph(_trace([_conv()]), engine="other")


def test_the_graph_of_a_plan() -> None:
    t = {name: _tensor(name, (1, 8)) for name in "abcdef"}
    rows = [
        _layer("first", "Conv", [t["a"]], [t["b"]]),
        _layer("left", "Conv", [t["b"]], [t["c"]]),
        _layer("right", "Conv", [t["b"]], [t["d"]]),
        _layer("join", "PointWise", [t["c"], t["d"], t["f"]], [t["e"]], ms=None),
    ]
    graph = plan_graph(_trace(rows, [("a", "input"), ("e", "output")]))
    nodes = graph.nodes.set_index("name")
    assert nodes["rank"].to_dict() == {"a": 0, "first": 1, "left": 2, "right": 2, "join": 3, "e": 4}
    assert sorted(nodes.loc[["left", "right"], "x"]) == [-0.5, 0.5]
    assert nodes.loc["join", "mean_ns"] is pd.NA
    number = nodes["node"].to_dict()
    edges = set(zip(graph.edges["source"], graph.edges["target"], graph.edges["tensor"], strict=True))
    assert (number["first"], number["left"], "b") in edges
    assert (number["a"], number["first"], "a") in edges
    assert (number["join"], number["e"], "e") in edges
    assert (-1, number["join"], "f") in edges, "where f comes from is not said"
    assert not graph.edges["back"].any()


def test_loops_lead_back_instead_of_around_for_ever() -> None:
    s, u = _tensor("state", (1, 8)), _tensor("u", (1, 8))
    rows = [_layer("body", "Conv", [s], [u]), _layer("update", "PointWise", [u], [s])]
    graph = plan_graph(_trace(rows))
    assert graph.nodes["rank"].tolist() == [0, 1]
    assert graph.edges["back"].tolist() == [True, False]
