"""`ChartView`: charts in a notebook, made when they are first asked for, linked with a timeline."""

from __future__ import annotations

import pytest
from timeline_traces import HOSTILE, model_trace
from trace_builder import Builder

pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")

from torchtrt_viz.errors import OptionError
from torchtrt_viz.widgets import ChartView, Explorer, Timeline
from torchtrt_viz.widgets.figures.theme import note_theme, theme_of


@pytest.fixture(scope="module")
def trace():
    return model_trace(steps=2)


@pytest.fixture(autouse=True)
def no_theme_is_left():
    yield
    note_theme("")


def test_charts_are_made_when_they_are_in_sight(trace):
    view = ChartView(trace)
    assert view.charts == {}
    view._on_message(view, {"op": "open", "dark": True}, [])
    assert [name for name, _ in view.names] == list(view.charts)
    assert "memory" not in view.charts, "nothing of it was recorded"
    assert view.chosen == "layers"
    assert 'data-chart="layers"' in view.markup
    assert theme_of("auto", None) == "dark", "the front end saw it"


def test_another_chart_is_chosen(trace):
    view = ChartView(trace)
    view.chosen = "flame"
    assert 'data-chart="flame"' in view.markup
    assert view.says == view.charts["flame"].says
    assert list(view.frame["name"]) == list(view.charts["flame"].body.name)
    assert "<table" in view.markup, "the text alternative"


def test_what_there_is_not_is_said():
    view = ChartView(Builder().build())
    view.make()
    assert "Nothing" in view.says
    assert "Nothing" in view.static_form()
    with pytest.raises(OptionError, match="chart"):
        _ = view.frame


def test_labels_lead_to_spans_of_the_timeline(trace):
    timeline = Timeline(trace)
    view = ChartView(trace, timeline=timeline)
    view.chosen = "kernels"
    kernel = view.frame["name"].iloc[0]
    view._on_message(view, {"op": "show", "request": {"names": [kernel]}}, [])
    assert set(timeline.selection["name"]) == {kernel}
    rows = view.charts["critical_path"].rows
    view._on_message(view, {"op": "show", "request": {"rows": list(rows)}}, [])
    assert set(timeline.selection.index) <= set(rows)
    assert len(timeline.selection)


@pytest.mark.parametrize("request_", [None, 3, {"rows": ["a", -5, 10**9]}, {"names": 7}, {"rows": {}}])
def test_what_a_page_sends_is_not_trusted(trace, request_):
    timeline = Timeline(trace)
    view = ChartView(trace, timeline=timeline)
    view._on_message(view, {"op": "show", "request": request_}, [])
    view._on_message(view, "open", [])
    assert len(timeline.selection) == 0


def test_names_are_text():
    view = ChartView(model_trace(steps=1, hostile=True))
    view.make()
    for name in view.charts:
        view.chosen = name
        assert not any(text in view.markup for text in HOSTILE[:2])
    assert not any(text in view.static_form() for text in HOSTILE[:2])


def test_a_saved_notebook_keeps_the_picture(trace):
    form = ChartView(trace).static_form()
    assert form.startswith("<img alt=")
    assert "data:image/svg+xml;base64," in form
    assert "<script" not in form


def test_the_explorer_has_charts_that_cost_nothing_until_they_are_seen(trace):
    explorer = Explorer(trace)
    assert explorer.charts.charts == {}
    assert explorer.charts.linked
