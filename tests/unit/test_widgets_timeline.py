"""The widget from Python: its state both ways, and what it answers to messages."""

from __future__ import annotations

import numpy as np
import pytest
from timeline_traces import model_trace

pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")

from torchtrt_viz import load
from torchtrt_viz.errors import OptionError, OutputError
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.widgets.timeline import Timeline


@pytest.fixture
def trace():
    return model_trace()


@pytest.fixture
def widget(trace, monkeypatch):
    made = Timeline(trace)
    sent = []
    monkeypatch.setattr(made, "send", lambda content, buffers=None: sent.append((content, buffers)))
    made.sent = sent
    return made


def test_the_trace_offers_it(trace):
    widget = trace.timeline(height=300, theme="dark", color_by="kind")
    assert (widget.height, widget.theme, widget.color_by) == (300, "dark", "kind")
    assert repr(widget) == "<Timeline of 839 events on 5 tracks>"


@pytest.mark.parametrize("options", [{"theme": "pink"}, {"color_by": "x"}, {"height": 3}])
def test_wrong_options_name_what_is_allowed(trace, options):
    with pytest.raises(OptionError, match=next(iter(options))):
        Timeline(trace, **options)


def test_viewers_without_widgets_show_a_static_picture(trace):
    made = Timeline(trace)
    data, _ = made._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == made.model_id
    html = data["text/html"]
    assert html == made.get_state()["still"]
    assert "SYNTHETIC DATA" in html
    for label in trace.tracks["label"]:
        assert label in html
    assert "<script" not in html
    assert data["text/plain"].startswith("<Timeline of 839 events")


def test_messages_are_answered_to_who_asked(widget):
    widget._on_message(widget, {"op": "open", "id": "a-1"}, [])
    content, buffers = widget.sent[-1]
    assert content["reply"] == "a-1"
    assert content["events"] == 839
    assert all(isinstance(buffer, bytes) for buffer in buffers)
    widget._on_message(widget, {"op": "nonsense", "id": "a-2"}, [])
    assert widget.sent[-1][0] == {"error": "unknown request 'nonsense'", "reply": "a-2"}


def test_an_unforeseen_failure_is_answered_too(widget, monkeypatch, caplog):
    def fail(request):
        raise RuntimeError("boom")

    monkeypatch.setattr(widget.service, "answer", fail)
    widget._on_message(widget, {"op": "view", "id": "a-3"}, [])
    assert widget.sent[-1][0] == {"error": "RuntimeError: boom", "reply": "a-3"}
    assert "boom" in caplog.text


def test_nothing_is_selected_at_first(widget, trace):
    assert widget.selection.empty
    assert widget.selection.columns.tolist() == trace.spans.columns.tolist()


def test_a_selected_span_is_a_row_of_the_frame(widget, trace):
    row = int(widget.scene.scene_rows([37])[0])
    widget.selected = {"kind": "span", "row": row}
    assert widget.selection.index.tolist() == [37]
    assert widget.selection.equals(trace.spans.iloc[[37]])


def test_a_box_selects_what_touches_it(widget, trace):
    stream = next(track for track in widget.scene.tracks if track.label == "stream 7")
    widget.selected = {
        "kind": "box",
        "t0": 500_000,
        "t1": 800_000,
        "lanes": [lane.lane for lane in stream.lanes],
    }
    start = trace.spans["start_ns"] - widget.scene.origin_ns
    here = (trace.spans["track"] == 3) & (start <= 800_000) & (start + trace.spans["dur_ns"] > 500_000)
    assert widget.selection.index.tolist() == trace.spans.index[here.fillna(False).astype(bool)].tolist()
    assert len(widget.selection) > 5


def test_lanes_that_do_not_exist_are_no_lanes(widget):
    widget.selected = {"kind": "box", "t0": 0, "t1": 10**9, "lanes": [-4, 10**6]}
    assert widget.selection.empty


def test_select_by_time_and_track(widget, trace):
    chosen = widget.select(100_000, 400_000, tracks="STREAM 7")
    assert set(chosen["track"]) == {3}
    assert widget.selected["kind"] == "box"
    widget.select()
    assert widget.selection.empty
    with pytest.raises(OptionError, match="stream 20"):
        widget.select(tracks="no such track")
    with pytest.raises(OptionError, match="end_ns"):
        widget.select(10, 5)


def test_instants_are_selected_apart(widget, trace):
    chosen = widget.select()
    widget.select(0, 200_000, absolute=True)
    assert (
        widget.selected_instants.index.tolist()
        == trace.instants.index[trace.instants["ts_ns"] <= 200_000].tolist()
    )
    assert chosen.empty


def test_the_panel_counts_what_is_selected(widget, trace):
    """Boxes of any time and lanes: the panel's number of events is the number of rows, instants included."""
    rng = np.random.default_rng(4)
    scene = widget.scene
    lanes = np.flatnonzero(~scene.lane_is_cover)
    instants = 0
    for _ in range(60):
        t0, t1 = np.sort(rng.integers(-10, scene.length_ns + 10, 2)).tolist()
        some = rng.choice(lanes, rng.integers(1, len(lanes) + 1), replace=False).tolist()
        t1 = t0 if rng.random() < 0.2 else t1
        request = {"op": "totals", "t0": t0, "t1": t1, "lanes": some}
        answer, _ = widget.service.answer(request)
        widget.selected = {"kind": "box", "t0": t0, "t1": t1, "lanes": some + some[:1]}
        assert answer["events"] == len(widget.selection)
        instants += len(widget.selected_instants)
    assert instants


def test_a_selection_with_instants_is_one_frame(widget, trace):
    chosen = widget.select(-(10**12))
    spans, instants = (chosen[chosen["event"] == each] for each in ("span", "instant"))
    assert len(instants) == len(trace.instants)
    assert instants["dur_ns"].isna().all()
    assert instants["start_ns"].tolist() == trace.instants["ts_ns"].tolist()
    assert instants["name"].tolist() == trace.instants["name"].tolist()
    assert (instants["t_ns"] - instants["start_ns"]).nunique() == 1
    assert spans["dur_ns"].tolist() == trace.spans.loc[spans.index, "dur_ns"].tolist()
    assert str(chosen["dur_ns"].dtype) == "Int64"
    assert str(chosen["kind"].dtype) == "category"
    assert widget.highlight(chosen) == len(chosen)


def test_zoom_counts_from_the_traces_start(widget):
    widget.zoom(1_000_000, 2_000_000)
    assert widget.view == (1_000_000, 2_000_000)
    assert widget.view_ns == (970_000, 1_970_000)  # the trace begins at -30 µs of its own base
    widget.zoom(1_000_000, 2_000_000, absolute=True)
    assert widget.view == (1_030_000, 2_030_000)
    widget.zoom()
    assert widget.view == (0, widget.scene.end_ns - widget.scene.origin_ns)
    with pytest.raises(OptionError, match="absolute=True"):
        widget.zoom(10**18, 10**18 + 5)
    with pytest.raises(OptionError, match="more than start_ns"):
        widget.zoom(5, 5)


def test_show_marks_selects_and_zooms(widget, trace):
    long = trace.spans[trace.spans["dur_ns"] > 30_000].query("timing == 'measured'")
    shown = widget.show(long)
    assert shown.index.tolist() == widget.selection.index.tolist() == long.index.tolist()
    assert widget.marks["count"] == len(long)
    first, last = long["t_ns"].min(), (long["t_ns"] + long["dur_ns"]).max()
    margin = 0.08 * (last - first)
    assert widget.view_range == pytest.approx([first - margin, last + margin])
    widget.show(long.head(1), zoom=False)
    assert widget.selected == {"kind": "span", "row": long.index[0]}
    assert widget.view_range == pytest.approx([first - margin, last + margin])
    inside = widget.show(1_000_000, 2_000_000)
    assert widget.view == (1_000_000, 2_000_000)
    at = trace.spans.query("timing == 'measured' and t_ns <= 2_000_000 and t_ns + dur_ns > 1_000_000")
    assert set(inside.query("event == 'span'").index) == set(at.index)
    with pytest.raises(OptionError, match="place on the time axis"):
        widget.show(trace.spans.query("timing == 'aggregate'"))
    assert widget.show(None).empty
    assert widget.marks["count"] == 0


def test_what_a_recorder_notes_of_itself_does_not_move_the_axis(corpus):
    trace = load(corpus / "kineto" / "a100_ddp_nccl_fwdbwd.json.gz")
    scene = Scene.of(trace)
    measured = trace.spans[trace.spans["timing"] == "measured"]
    assert scene.origin_ns == measured["start_ns"].min()
    assert scene.end_ns == (measured["start_ns"] + measured["dur_ns"]).max()
    assert scene.first_ns == trace.spans["start_ns"].min() == scene.origin_ns - 28_719_315
    made = Timeline(trace)
    made.zoom(1_000_000, 2_000_000)  # the docstring's example
    at = measured.query("t_ns <= 2_000_000 and t_ns + dur_ns > 1_000_000")
    assert len(at) == 4
    recorder = trace.spans.index[trace.spans["timing"] == "modeled"]
    assert set(made.select(*made.view).index) == {*at.index, *recorder}


def test_find_marks_and_returns_the_matches(widget, trace):
    found = widget.find("SGEMM")
    expected = trace.spans[trace.spans["name"].astype(str).str.contains("sgemm")]
    assert found.index.tolist() == expected.index.tolist()
    assert widget.selection.index.tolist() == expected.index.tolist()
    assert widget.marks["count"] == len(expected)
    assert widget.marks["label"] == f"{len(expected)} matches"
    assert widget.search == "SGEMM"
    assert widget.find("no such name").empty


def test_highlight_takes_spans_tables_rows_and_nothing(widget, trace):
    long = trace.spans[trace.spans["dur_ns"] > 30_000]
    assert widget.highlight(long) == int((long["timing"] == "measured").sum())
    assert widget.highlight(long["dur_ns"]) == int((long["timing"] == "measured").sum())
    assert widget.highlight([0, 1, 2]) == 3
    table = trace.operators().head(2)
    assert widget.highlight(table) == int(table["calls"].sum())
    assert widget.highlight(table.set_index("name")) == int(table["calls"].sum())
    version = widget.marks["version"]
    assert widget.highlight(None) == 0
    assert widget.marks["version"] == version + 1
    with pytest.raises(TypeError, match="a column 'name'"):
        widget.highlight(trace.summary())
    with pytest.raises(TypeError, match="row numbers"):
        widget.highlight(["x"])


def test_what_the_browser_searched_is_marked_in_the_kernel(widget, trace):
    widget.search = "cudaLaunch"
    names, rows = widget.service.marks
    assert rows is None
    assert {widget.scene.names[i] for i in np.flatnonzero(names)} == {"cudaLaunchKernel"}


def test_a_picture_is_saved_when_the_browser_sends_it(widget, tmp_path):
    for state in ([], ["shown", "hidden"]):
        for op in state:
            widget._on_message(widget, {"op": op}, [])
        with pytest.raises(OutputError, match=r"Display the timeline first, or use write_svg\(\)"):
            widget.save_picture(tmp_path / "view.png")
    widget._on_message(widget, {"op": "shown"}, [])
    widget.save_picture(tmp_path / "view.png")
    request, _ = widget.sent[-1]
    assert request["event"] == "picture"
    widget._on_message(widget, {"op": "picture", "id": request["id"]}, [memoryview(b"\x89PNG...")])
    assert (tmp_path / "view.png").read_bytes() == b"\x89PNG..."
    # An answer that nobody asked for writes nothing.
    widget._on_message(widget, {"op": "picture", "id": "x"}, [memoryview(b"evil")])
    assert [file.name for file in tmp_path.iterdir()] == ["view.png"]


def test_two_traces_side_by_side():
    both = Timeline([model_trace(steps=1), model_trace(steps=2)])
    found = both.find("ProfilerStep")
    assert found["part"].tolist() == ["trace 0", "trace 1", "trace 1"]
    assert both.highlight(found) == 3
    with pytest.raises(TypeError, match="column 'part'"):
        both.highlight(found.drop(columns="part"))
