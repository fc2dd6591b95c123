"""Charts: the figures hold the numbers of the tables, and say host or GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from described_engines import chain, engine
from timeline_traces import HOSTILE, model_trace
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz import analysis
from torchtrt_viz.charts.palette import THEMES
from torchtrt_viz.charts.registry import chart
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model import schema
from torchtrt_viz.trace import Trace
from torchtrt_viz.widgets import charts
from torchtrt_viz.widgets.figures.theme import note_theme

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


# -- figures of `torchtrt_viz.charts` --------------------------------------------------------------------


def marks_of(figure) -> float:
    """Sum of the bars, or of the values of the points, in the unit of their axis."""
    horizontal = [bar for bar in figure.data if bar.type == "bar" and bar.orientation == "h"]
    return sum(float(np.sum(bar.x)) for bar in horizontal) * unit_of(figure.layout.xaxis)


@pytest.mark.parametrize(
    "name", ["kernels", "gpu_time", "idle", "critical_path", "longest_delays", "delegate_phases", "layers"]
)
def test_bars_of_a_figure_are_those_of_the_chart(trace, name):
    body = chart(trace, name).body
    assert marks_of(charts.CHARTS[name](trace)) == pytest.approx(
        sum(part.value for bar in body.bars for part in bar.parts)
    )


def test_columns_of_a_figure_are_the_launches(trace):
    figure = charts.launch_delay(trace)
    assert sum(int(np.sum(bar.y)) for bar in figure.data) == len(analysis.launch_delays(trace))


def test_boxes_of_a_figure_keep_the_time(trace):
    for name in ("flame", "flame_gpu"):
        (data,) = charts.CHARTS[name](trace).data
        inside = dict.fromkeys(data.ids, 0.0)
        for above, value in zip(data.parents, data.values, strict=True):
            if above:
                inside[above] += value
        for box, value in zip(data.ids, data.values, strict=True):
            assert inside[box] <= value
        assert data.values[0] == inside["all"], "all is the sum of the threads"


def test_the_graph_of_an_engine_has_every_layer_and_tensor():
    figure = charts.plan(engine(chain(40)))
    lines, tensors, *nodes = figure.data
    assert sum(len(one.x) for one in nodes) == 41
    assert list(lines.x).count(None) == len(tensors.x) == 40 + 13
    assert not lines.showlegend


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", list(charts.CHARTS))
def test_a_figure_has_the_colours_of_its_theme(trace, name, theme):
    layout = charts.CHARTS[name](trace, theme=theme).layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == THEMES[theme]["back"]
    assert layout.font.color == THEMES[theme]["text"]


def test_the_theme_of_a_figure_when_nobody_says(trace, monkeypatch):
    import plotly.io as pio

    def back():
        return charts.layers(trace).layout.paper_bgcolor

    assert back() == THEMES["light"]["back"]
    monkeypatch.setattr(pio.templates, "default", "plotly_dark")
    assert back() == THEMES["dark"]["back"], "plotly's own setting"
    monkeypatch.setattr(pio.templates, "default", "plotly")
    note_theme("dark")
    try:
        assert back() == THEMES["dark"]["back"], "what a widget of ours saw"
    finally:
        note_theme("")
    with pytest.raises(OptionError, match="auto"):
        charts.layers(trace, theme="blue")


def test_a_chart_is_saved_without_a_browser(trace, tmp_path):
    path = trace.save_chart("layers", tmp_path / "layers.svg", engine="head_0", theme="dark")
    assert path.read_text().startswith("<svg xmlns=")
    with pytest.raises(OptionError, match="engine"):
        trace.save_chart("flame", tmp_path / "flame.svg", engine="head_0")
    with pytest.raises(OptionError, match="head_0"):
        trace.save_chart("layers", tmp_path / "x.svg", engine="other")
    assert [file.name for file in tmp_path.iterdir()] == ["layers.svg"]
