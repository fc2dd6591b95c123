"""Call trees and flame graphs of traces worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.device.calltree import call_tree, flame_graph, folded_stacks
from torchtrt_viz.errors import OptionError
from torchtrt_viz.trace import Trace


def _trace() -> Trace:
    b = Builder()
    main, other, gpu = b.track("main"), b.track("autograd"), b.stream(7)
    for t in (0, 1000):
        b.span("run.py(1): main", t, 900, main, "python")
        b.span("aten::linear", t + 100, 300, main)
        b.span("aten::addmm", t + 150, 200, main)
        b.span("cudaLaunchKernel", t + 200, 50, main, "runtime", correlation=t + 1)
        b.span("aten::relu", t + 500, 100, main)
        b.span("gemm", t + 5000, 700, gpu, "kernel", correlation=t + 1)
    b.span("aten::relu", 50, 10, other)
    return b.build()


def _paths(tree: object) -> dict[str, tuple[int, int, int]]:
    out: dict[str, tuple[int, int, int]] = {}
    names: list[str] = []
    for row in tree.itertuples(index=False):  # type: ignore[attr-defined]
        names.append(row.name if row.parent < 0 else f"{names[row.parent]}/{row.name}")
        out[names[-1]] = (row.calls, row.total_ns, row.self_ns)
    return out


def test_calls_with_the_same_path_are_one_node() -> None:
    assert _paths(call_tree(_trace())) == {
        "run.py(1): main": (2, 1800, 1000),
        "run.py(1): main/aten::linear": (2, 600, 200),
        "run.py(1): main/aten::linear/aten::addmm": (2, 400, 300),
        "run.py(1): main/aten::linear/aten::addmm/cudaLaunchKernel": (2, 100, 100),
        "run.py(1): main/aten::relu": (2, 200, 200),
        "aten::relu": (1, 10, 10),
    }


def test_self_times_sum_to_the_roots() -> None:
    tree = call_tree(_trace())
    assert tree["self_ns"].sum() == tree.loc[tree["parent"] < 0, "total_ns"].sum()
    assert (tree["parent"] < tree["node"]).all()


def test_kinds_left_out_move_their_children_up() -> None:
    assert _paths(call_tree(_trace(), kinds=("operator",))) == {
        "aten::linear": (2, 600, 200),
        "aten::linear/aten::addmm": (2, 400, 400),
        "aten::relu": (3, 210, 210),
    }
    with pytest.raises(OptionError, match="operator"):
        call_tree(_trace(), kinds=("operators",))


def test_steps_are_one_unless_kept_apart() -> None:
    b = Builder()
    main = b.track("main")
    for step in range(3):
        b.span(f"ProfilerStep#{step}", 100 * step, 90, main, "step")
        b.span("add", 100 * step + 10, 20, main)
    assert _paths(call_tree(b.build())) == {"ProfilerStep": (3, 270, 210), "ProfilerStep/add": (3, 60, 60)}
    assert len(call_tree(b.build(), by_step=True)) == 6


def test_threads_as_roots() -> None:
    paths = _paths(call_tree(_trace(), by_thread=True))
    assert paths["main"] == (1, 1800, 0)
    assert paths["autograd/aten::relu"] == (1, 10, 10)


def test_device_time_by_launching_code() -> None:
    paths = _paths(call_tree(_trace(), value="gpu"))
    assert paths["run.py(1): main"][1:] == (1400, 0)
    assert paths["run.py(1): main/aten::linear/aten::addmm/cudaLaunchKernel"][1:] == (1400, 1400)
    assert paths["run.py(1): main/aten::relu"][1:] == (0, 0)
    assert (
        _paths(call_tree(_trace(), value="gpu", kinds=("operator",)))["aten::linear/aten::addmm"][2] == 1400
    )


def test_boxes_of_a_flame_graph_lie_inside_their_callers_and_do_not_overlap() -> None:
    graph = flame_graph(_trace())
    left = dict(zip(graph["node"], graph["left_ns"], strict=True))
    width = dict(zip(graph["node"], graph["total_ns"], strict=True))
    for row in graph.itertuples(index=False):
        if row.parent >= 0:
            assert left[row.parent] <= row.left_ns
            assert row.left_ns + row.total_ns <= left[row.parent] + width[row.parent]
    for _, level in graph.groupby("depth"):
        ordered = level.sort_values("left_ns")
        ends = (ordered["left_ns"] + ordered["total_ns"]).to_numpy()
        assert (ordered["left_ns"].to_numpy()[1:] >= ends[:-1]).all()
    assert graph.loc[graph["depth"] == 0, "pct"].sum() == pytest.approx(100)
    assert len(flame_graph(_trace(), min_pct=20)) == 3


def test_folded_stacks() -> None:
    table = folded_stacks(_trace())
    assert (
        dict(zip(table["stack"], table["self_ns"], strict=True))[
            "run.py(1): main;aten::linear;aten::addmm;cudaLaunchKernel"
        ]
        == 100
    )
    assert table["self_ns"].sum() == 1810


def test_recursion_to_a_depth_of_thousands() -> None:
    b = Builder()
    main = b.track("main")
    for depth in range(3000):
        b.span("f", depth, 10_000 - 2 * depth, main, "python")
    tree = call_tree(b.build())
    assert len(tree) == 3000
    assert tree["self_ns"].sum() == 10_000
    assert np.array_equal(tree["depth"], np.arange(3000))


def test_an_empty_trace_has_an_empty_tree() -> None:
    b = Builder()
    b.track("main")
    for table in (call_tree(b.build()), flame_graph(b.build()), folded_stacks(b.build())):
        assert len(table) == 0
