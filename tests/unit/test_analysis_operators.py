"""Operator and kernel tables of traces whose numbers are worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.device.operator_tables import kernels, operators
from torchtrt_viz.errors import OptionError


def _recursive() -> Builder:
    b = Builder()
    main = b.track("main")
    # linear(100) > addmm(60) > linear(20), and a second linear(10) afterwards
    b.span("linear", 0, 100, main, args={"Input Dims": [[2, 3], [3]]})
    b.span("addmm", 10, 60, main, args={"Input Dims": [[2, 3]]})
    b.span("linear", 20, 20, main, args={"Input Dims": [[2, 3], [3]]})
    b.span("linear", 200, 10, main, args={"Input Dims": [[4, 4], [4]]})
    return b


def test_recursion_counts_once_in_inclusive_time() -> None:
    table = operators(_recursive().build()).set_index("name")
    linear = table.loc["linear"]
    assert linear["calls"] == 3
    assert linear["nested_calls"] == 1
    assert linear["total_ns"] == 110
    assert linear["self_ns"] == 40 + 20 + 10
    assert linear["mean_ns"] == pytest.approx(130 / 3)
    assert linear["median_ns"] == 20
    assert (linear["min_ns"], linear["max_ns"]) == (10, 100)
    assert table.loc["addmm", "total_ns"] == 60
    assert table.loc["addmm", "self_ns"] == 40
    assert table["self_pct"].sum() == pytest.approx(100)
    assert table.loc["addmm", "self_pct"] == pytest.approx(100 * 40 / 110)


def test_no_device_work_is_missing_not_zero() -> None:
    table = operators(_recursive().build())
    assert table["device_total_ns"].isna().all()
    assert table["device_self_ns"].isna().all()


def test_by_shape_splits_rows() -> None:
    table = operators(_recursive().build(), by="shape", sort="total_ns")
    rows = {(r.name, r.shape): (r.calls, r.total_ns) for r in table.itertuples(index=False)}
    assert rows == {
        ("linear", "[[2,3],[3]]"): (2, 100),
        ("addmm", "[[2,3]]"): (1, 60),
        ("linear", "[[4,4],[4]]"): (1, 10),
    }


def test_modules_sources_and_stacks_come_from_enclosing_python_frames() -> None:
    b = Builder()
    main = b.track("main")
    b.span("run.py(7): main", 0, 100, main, "python")
    b.span("nn.Module: Linear_0", 5, 90, main, "python")
    b.span("net.py(21): forward", 10, 80, main, "python")
    b.span("mm", 20, 10, main)
    b.span("mm", 120, 10, main)
    table = operators(b.build(), by=("module", "source", "stack"), sort=None)
    found = table[["module", "source", "stack"]].to_numpy(dtype=object).tolist()
    assert sum(all(pd.isna(value) for value in row) for row in found) == 1
    assert [
        "nn.Module: Linear_0",
        "net.py(21): forward",
        "run.py(7): main;nn.Module: Linear_0;net.py(21): forward",
    ] in found


def test_only_measured_host_operators_count() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    b.span("add", 0, 5, main)
    b.span("add", None, 5000, main)
    b.span("add", 3, 7, gpu)
    b.span("add", 9, 7, main, "annotation")
    assert operators(b.build())["total_ns"].tolist() == [5]
    assert operators(b.build(), kinds=("operator", "annotation"))["total_ns"].tolist() == [12]


def _launching() -> Builder:
    b = Builder()
    main, one, two = b.track("main"), b.stream(7), b.stream(9)
    b.span("linear", 0, 100, main, external_id=1)
    b.span("addmm", 10, 60, main, external_id=2)
    b.span("cudaLaunchKernel", 20, 5, main, "runtime", correlation=11)
    b.span("cudaGraphLaunch", 80, 5, main, "runtime", correlation=12)
    b.span("gemm", 200, 50, one, "kernel", correlation=11)
    b.span("relu", 260, 10, one, "kernel", correlation=12)
    b.span("relu", 265, 20, two, "kernel", correlation=12)
    b.span("Memcpy HtoD (Pinned -> Device)", 300, 7, one, "memcpy", external_id=2)
    b.span("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 310, 9, two, "kernel")
    b.span("nccl:all_reduce", 309, 11, two, "annotation")
    return b


def test_device_time_is_attributed_to_the_operators_that_launched_it() -> None:
    table = operators(_launching().build()).set_index("name")
    assert table.loc["addmm", "device_self_ns"] == 50 + 7
    assert table.loc["addmm", "device_total_ns"] == 50 + 7
    assert table.loc["linear", "device_self_ns"] == 30
    assert table.loc["linear", "device_total_ns"] == 87


def test_kernels_by_name_and_class() -> None:
    table = kernels(_launching().build()).set_index("name")
    assert table.loc["relu", "total_ns"] == 30
    assert table.loc["relu", "calls"] == 2
    assert table.loc["relu", "std_ns"] == pytest.approx(50**0.5)
    assert table.loc["gemm", "std_ns"] is pd.NA
    assert table["class"].to_dict() == {
        "gemm": "compute",
        "relu": "compute",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL": "communication",
        "Memcpy HtoD (Pinned -> Device)": "copy",
    }
    assert table["total_pct"].sum() == pytest.approx(100)
    assert table.loc["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "launch_rows"] == 0


def test_kernels_by_operator_and_stream() -> None:
    table = kernels(_launching().build(), by=("operator", "stream"))
    rows = {
        (r.name[:6], "" if pd.isna(r.operator) else r.operator, r.stream): r.total_ns
        for r in table.itertuples(index=False)
    }
    assert rows == {
        ("gemm", "addmm", "stream 7"): 50,
        ("relu", "linear", "stream 7"): 10,
        ("relu", "linear", "stream 9"): 20,
        ("Memcpy", "addmm", "stream 7"): 7,
        ("ncclDe", "", "stream 9"): 9,
    }


def test_a_flow_links_a_kernel_without_correlation() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    op = b.span("mul", 0, 10, main)
    launch = b.span("hipLaunchKernel", 2, 3, main, "runtime")
    kernel = b.span("mul_kernel", 20, 4, one, "kernel")
    b.flow("ac2g", launch, kernel, 5)
    assert op == 0
    assert operators(b.build())["device_self_ns"].tolist() == [4]


def test_bad_options_name_the_choices() -> None:
    trace = _launching().build()
    with pytest.raises(OptionError, match="shape"):
        operators(trace, by="colour")
    with pytest.raises(OptionError, match="self_ns"):
        operators(trace, sort="nothing")
    with pytest.raises(OptionError, match="operator"):
        operators(trace, kinds=("operators",))
    with pytest.raises(OptionError, match="device, stream"):
        kernels(trace, by="colour")
    with pytest.raises(OptionError, match="1 or more"):
        kernels(trace, top=0)


def test_empty_traces_give_empty_tables_with_all_columns() -> None:
    b = Builder()
    b.track("main")
    empty = b.build()
    assert len(operators(empty)) == 0
    assert "device_total_ns" in operators(empty).columns
    assert len(kernels(empty)) == 0
    assert "std_ns" in kernels(empty).columns
