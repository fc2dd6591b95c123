"""Charts: the figures hold the numbers of the tables, and say host or GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from timeline_traces import HOSTILE, model_trace
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz import analysis
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model import schema
from torchtrt_viz.trace import Trace
from torchtrt_viz.widgets import charts

go = pytest.importorskip("plotly.graph_objects", reason="plotly is not installed (extra lab)")
SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
UNIT = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


@pytest.fixture(scope="module")
def trace():
    return model_trace()


def unit_of(axis):
    return UNIT[axis.title.text.split("[")[1].rstrip("]")]


@pytest.mark.parametrize("name", list(charts.CHARTS))
def test_every_chart_is_a_plain_figure_even_of_nothing(name):
    empty = Trace(spans=schema.SPANS.frame({}), tracks=schema.TRACKS.frame({}))
    for one in (model_trace(steps=1, hostile=True), empty):
        figure = charts.CHARTS[name](one)
        assert type(figure) is go.Figure
        text = figure.to_json()
        for hostile in HOSTILE[:2]:
            assert hostile not in text


def test_layers_keep_host_and_gpu_apart(trace):
    figure = charts.layers(trace)
    frame = trace.layers()
    for bar in figure.data:
        side = {"host time": "host", "GPU time": "gpu"}[bar.name]
        assert np.sum(bar.x) * unit_of(figure.layout.xaxis) == pytest.approx(
            frame.loc[frame["domain"] == side, "total_ns"].sum()
        )
    assert len(figure.data) == 2
    assert "(3 of 11)" in charts.layers(trace, top=3).layout.title.text
    with pytest.raises(OptionError, match="head_0"):
        charts.layers(trace, engine="other")


def test_phases_stack_to_the_whole_call(trace):
    figure = charts.phases(trace)
    calls = trace.spans[trace.spans["kind"] == "delegate"].sort_values("start_ns")
    stacked = sum(np.asarray(bar.y) for bar in figure.data) * unit_of(figure.layout.yaxis)
    assert stacked == pytest.approx(calls["dur_ns"].to_numpy())
    assert [bar.name for bar in figure.data][:2] == ["torchtrt.input_binding", "torchtrt.enqueue_host"]
    with pytest.raises(OptionError, match="head_0"):
        charts.phases(trace, delegate="other")


def test_phases_of_a_call_in_a_call_count_once():
    """A proxy around a delegate records a call of its own: the host waited once (see `phases`)."""
    b = Builder()
    main = b.track("main")
    for number in range(3):
        t = 10_000 * number
        b.span("proxy", t, 5_000, main, "delegate", run_id="d")
        b.span("call", t + 100, 4_000, main, "delegate", run_id="d")
        b.span("bind", t + 200, 700 + number, main, "phase", run_id="d")
        b.span("run", t + 1_000, 2_000, main, "phase", run_id="d")
    made = b.build()
    figure = charts.phases(made)
    unit = unit_of(figure.layout.yaxis)
    assert [len(bar.y) for bar in figure.data] == [3, 3, 3]
    assert np.asarray(figure.data[0].y) * unit == pytest.approx([700, 701, 702])
    assert sum(np.sum(bar.y) for bar in figure.data) * unit == pytest.approx(3 * 5_000)


def test_phases_are_those_of_the_table():
    """Summed over calls, every bar is a row of the tables."""
    for made in (model_trace(), tv.load(SAMPLES / "demo_capture")):
        table = made.phases()
        for delegate in table["delegate"].unique():
            figure = charts.phases(made, delegate=delegate)
            unit = unit_of(figure.layout.yaxis)
            drawn = {bar.name: np.sum(bar.y) * unit for bar in figure.data}
            rows = table[table["delegate"] == delegate]
            names = rows["phase"].replace({"(outside its phases)": "outside phases"})
            assert drawn == pytest.approx(dict(zip(names, rows["total_ns"], strict=True)))
        calls = analysis.phases_by_call(made)
        assert calls.groupby("call_row")["dur_ns"].sum().tolist() == (
            made.spans.loc[sorted(calls["call_row"].unique()), "dur_ns"].tolist()
        )


def test_kernels_are_those_of_the_table(trace):
    figure = charts.kernels(trace)
    (bar,) = figure.data
    shown = np.asarray(bar.x)[::-1] * unit_of(figure.layout.xaxis)
    assert shown == pytest.approx(trace.kernels(top=30)["total_ns"].to_numpy())


def test_memory_is_that_of_the_table():
    b = Builder()
    main = b.track("main")
    b.span("op", 1_000, 500, main)
    for at, change in ((1_100, 512), (1_200, 2048), (1_300, -512)):
        b.instant("[memory]", at, main, "memory", **{"Bytes": change, "Device Type": 0, "Device Id": -1})
        b.counter("allocated memory/cpu", at, 4096 + change, main, "B")
    made = b.build()
    table = made.memory()
    figure = charts.memory(made)
    line = figure.data[0]
    assert np.asarray(line.y) * 2**20 == pytest.approx(table["allocated_bytes"].to_numpy())
    unit = unit_of(figure.layout.xaxis)
    assert np.asarray(line.x) * unit == pytest.approx((table["ts_ns"] - 1_000).to_numpy())


def test_layers_are_those_of_the_table(trace):
    figure = charts.layers(trace, top=100)
    table = trace.layers().dropna(subset=["total_ns"])
    unit = unit_of(figure.layout.xaxis)
    drawn = np.concatenate([np.asarray(bar.x) * unit for bar in figure.data])
    assert sorted(drawn) == pytest.approx(sorted(table["total_ns"].astype(float)))


def test_the_tree_is_the_flame_graph(trace):
    figure = charts.modules(trace, min_pct=1)
    table = analysis.flame_graph(trace, min_pct=1)
    assert list(figure.data[0].values[1:]) == table["total_ns"].tolist()
    assert list(figure.data[0].ids[1:]) == [f"n{node}" for node in table["node"]]


def test_host_and_gpu_shares_are_those_of_the_table(trace):
    (bar,) = charts.host_gpu(trace).data
    frame = trace.host_gpu()
    shown = frame[frame["measure"] != "window"]
    assert list(bar.x)[::-1] == pytest.approx(shown["pct"].dropna().astype(float).tolist())


def test_gaps_are_all_counted(trace):
    for level, frame in (("delegates", analysis.delegate_gaps(trace)), ("gpu", analysis.idle_gaps(trace))):
        figure = charts.gaps(trace, level=level)
        assert sum(int(np.sum(bar.y)) for bar in figure.data) == int((frame["dur_ns"] > 0).sum())
    with pytest.raises(OptionError, match="level"):
        charts.gaps(trace, level="x")


def test_iterations_are_those_of_the_analysis(trace):
    figure = charts.iterations(trace)
    bars = [data for data in figure.data if data.type == "bar"]
    values = np.concatenate([np.asarray(bar.y) for bar in bars]) * unit_of(figure.layout.yaxis)
    assert sorted(values) == pytest.approx(sorted(analysis.iterations(trace)["dur_ns"]))


@pytest.mark.parametrize("kind", ["icicle", "treemap"])
@pytest.mark.parametrize("value", ["host", "gpu"])
def test_the_call_tree_adds_up(trace, kind, value):
    figure = charts.modules(trace, kind=kind, value=value, min_pct=0)
    (data,) = figure.data
    assert data.type == kind
    tree = analysis.call_tree(trace, value=value)
    assert data.values[0] == tree.loc[tree["parent"] == -1, "total_ns"].sum()
    assert len(data.ids) == len(tree) + 1
    assert set(data.parents[1:]) <= set(data.ids)


def test_wrong_options_of_the_call_tree(trace):
    with pytest.raises(OptionError, match="icicle"):
        charts.modules(trace, kind="pie")
    with pytest.raises(OptionError, match="host"):
        charts.modules(trace, value="both")
