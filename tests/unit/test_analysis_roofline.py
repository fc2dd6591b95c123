"""Operations and bytes by shape, and the roofline of hand-made traces."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.core.element_types import element_bytes
from torchtrt_viz.analysis.device.device_specs import Device, device_of, find_device
from torchtrt_viz.analysis.device.flops import family, work_of
from torchtrt_viz.analysis.device.roofline import operator_roofline, precision_of
from torchtrt_viz.errors import OptionError


def _work(name: str, shapes: Any, values: Any = (), dtype: str = "float") -> Any:
    return work_of(name, shapes, [dtype] * len(shapes), [str(v) for v in values])


def test_matrix_products() -> None:
    assert _work("aten::mm", [[2, 3], [3, 5]]).flops == 2 * 2 * 3 * 5
    assert _work("aten::mm", [[2, 3], [3, 5]]).bytes == 4 * (6 + 15 + 10)
    assert _work("aten::addmm", [[5], [2, 3], [3, 5], [], []]).flops == 60
    assert _work("aten::bmm", [[7, 2, 3], [7, 3, 5]]).flops == 7 * 60
    assert _work("aten::linear", [[4, 2, 3], [5, 3], [5]]).flops == 2 * 8 * 3 * 5
    assert _work("aten::matmul", [[4, 2, 3], [3, 5]]).flops == 4 * 60
    assert _work("aten::matmul", [[4, 1, 2, 3], [6, 3, 5]]).flops == 24 * 60
    assert _work("aten::matmul", [[3], [3, 5]]).flops == 30
    assert _work("aten::mm", [[2, 3], [3, 5]], dtype="c10::BFloat16").bytes == 62


def test_what_was_not_recorded_is_not_guessed() -> None:
    assert _work("aten::mm", [[2, 3], []]) is None
    assert _work("aten::mm", [[2, 3], [4, 5]]) is None
    assert _work("aten::conv2d", [[1, 3, 8, 8], [4, 3, 3, 3], [4]]) is None, "no stride recorded"
    assert work_of("aten::mm", None, None, None) is None
    assert work_of("aten::mm", [[2, 3], [3, 5]], None, None).bytes is None, "no element type recorded"
    assert family("aten::add") is None


def test_convolutions() -> None:
    # 2 images of 8 channels of 16 by 16, each number from 3 channels of a 3 by 3 window
    shapes = [[2, 3, 16, 16], [8, 3, 3, 3], [], [], [], [], [], [], []]
    values = ["", "", "", [1, 1], [1, 1], [1, 1], False, [0], 1]
    found = _work("aten::convolution", shapes, values)
    flops = 2 * (2 * 8 * 16 * 16) * (3 * 3 * 3)
    assert found.flops == flops
    assert found.bytes == 4 * (2 * 3 * 16 * 16 + 8 * 3 * 3 * 3 + 2 * 8 * 16 * 16)
    # in 8 groups, stride 2 by 1, padding 0 by 2, dilation 1 by 2: 7 by 15 numbers, each from 1 channel
    shapes = [[1, 8, 17, 15], [16, 1, 5, 3], [], [], [], [], [], [], []]
    values = ["", "", "", [2, 1], [0, 2], [1, 2], False, [0], 8]
    assert _work("aten::convolution", shapes, values).flops == 2 * (16 * 7 * 15) * (1 * 5 * 3)
    # backward: the gradients of input and weight, each as much as forward
    values = ["", "", "", [0], [1, 1], [1, 1], [1, 1], False, [0], 1, [True, True, False]]
    found = _work("aten::convolution_backward", [[2, 8, 16, 16], [2, 3, 16, 16], [8, 3, 3, 3]], values)
    assert found.flops == 2 * flops


def test_transposed_convolution() -> None:
    # every number of the input is spread over 6 channels of a 3 by 3 window
    values = ["", "", "", [2, 2], [1, 1], [1, 1], True, [0, 0], 1]
    found = _work("aten::convolution", [[1, 4, 8, 8], [4, 6, 3, 3]], values)
    assert found.flops == 2 * (4 * 8 * 8) * (6 * 3 * 3)


def test_attention() -> None:
    shapes = [[2, 4, 16, 8], [2, 4, 24, 8], [2, 4, 24, 8], [], [], []]
    plain = _work("aten::scaled_dot_product_attention", shapes, ["", "", "", "", 0.0, False])
    assert plain.flops == 2 * 2 * (2 * 4) * 16 * 24 * 8, "two products of matrices in each of 8 heads"
    causal = _work("aten::scaled_dot_product_attention", shapes, ["", "", "", "", 0.0, True])
    assert causal.flops == plain.flops // 2


def test_element_sizes() -> None:
    assert element_bytes("c10::Half") == 2
    assert element_bytes("BFloat16") == 2
    assert element_bytes("signed char") == 1
    assert element_bytes("float8_e4m3fn") == 1
    assert element_bytes("who knows") is None
    assert element_bytes(None) is None
    assert precision_of("float") == "fp32"
    assert precision_of("float", tf32=True) == "tf32"
    assert precision_of("c10::BFloat16") == "bf16"
    assert precision_of("bool") is None


def test_devices_are_found_by_the_names_that_drivers_give() -> None:
    assert find_device("NVIDIA A100-SXM4-80GB").bandwidth_gbps == 2039
    assert find_device("NVIDIA A100-PG509-200").bandwidth_gbps == 1555
    assert find_device("NVIDIA H100 80GB HBM3").peak("bf16") == pytest.approx(989.4)
    assert find_device("AMD Instinct MI300X").peak("fp4") is None
    with pytest.raises(OptionError, match="NVIDIA T4"):
        find_device("abacus")


_DEVICE = Device("toy", bandwidth_gbps=10.0, tflops={"fp32": 1.0})


def test_roofline_of_a_gpu_trace() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    details = {"Input Dims": [[100, 100], [100, 100]], "Input type": ["float", "float"]}
    b.span("aten::matmul", 0, 50, main, args=details)
    b.span("aten::mm", 10, 30, main, args=details)
    b.span("cudaLaunchKernel", 15, 5, main, "runtime", correlation=3)
    b.span("aten::mm", 100, 30, main, args={})
    b.span("gemm", 200, 4_000_000, gpu, "kernel", correlation=3)
    table = operator_roofline(b.build(), device=_DEVICE).set_index("name")
    row = table.loc["aten::matmul"]
    assert row["calls"] == 1, "the inner mm is the same work"
    assert row["domain"] == "gpu"
    assert row["time_ns"] == 4_000_000
    assert row["flops"] == 2_000_000
    assert row["bytes"] == 120_000
    assert row["intensity"] == pytest.approx(2_000_000 / 120_000)
    assert row["tflops"] == pytest.approx(2e6 / 4e-3 / 1e12)
    assert row["gbps"] == pytest.approx(120_000 / 4e-3 / 1e9)
    assert row["bound"] == "memory"
    assert row["roof_tflops"] == pytest.approx(2_000_000 / 120_000 * 10 / 1e3)
    assert row["efficiency_pct"] == pytest.approx(100 * row["tflops"] / row["roof_tflops"])
    unknown = table.loc["aten::mm"]
    assert unknown["calls"] == 1
    assert unknown["flops"] is pd.NA
    assert unknown["time_ns"] is pd.NA
    assert pd.isna(unknown["shape"])


def test_roofline_of_a_host_trace_needs_no_device() -> None:
    b = Builder()
    details = {"Input Dims": [[10, 10], [10, 10]], "Input type": ["float", "float"]}
    b.span("aten::mm", 0, 2000, b.track("main"), args=details)
    row = operator_roofline(b.build()).iloc[0]
    assert row["domain"] == "host"
    assert row["tflops"] == pytest.approx(2000 / 2e-6 / 1e12)
    assert row["roof_tflops"] is pd.NA
    assert pd.isna(row["bound"])


def test_the_trace_names_its_device() -> None:
    b = Builder()
    b.track("main")
    assert device_of(b.build(deviceProperties=[{"name": "NVIDIA A100-SXM4-80GB"}] * 2)) is find_device(
        "A100 80GB"
    )
    assert device_of(b.build()) is None
    assert device_of(b.build(deviceProperties=[{"name": "Unheard of"}])) is None
