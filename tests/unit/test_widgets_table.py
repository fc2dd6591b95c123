"""The table widget from Python, and its link with the timeline."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from timeline_traces import model_trace

pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")

from torchtrt_viz.errors import OptionError, TorchTrtVizError
from torchtrt_viz.widgets.explore import Explorer
from torchtrt_viz.widgets.spans_of import KNOWN, rows_of
from torchtrt_viz.widgets.table import Table


@pytest.fixture(scope="module")
def trace():
    return model_trace()


@pytest.fixture
def linked(trace):
    timeline = trace.timeline()
    return Table(trace, timeline=timeline), timeline


def ask(widget):
    sent = []
    widget.send = lambda content, buffers=None: sent.append(content)
    widget._on_message(widget, {"op": "open", "id": 1}, [])
    json.dumps(sent[0], allow_nan=False)
    return sent[0]


def test_the_browser_gets_titles_texts_and_numbers(trace):
    answer = ask(Table(trace, "kernels"))
    columns = {column["key"]: column for column in answer["columns"]}
    assert answer["rows"] == len(trace.kernels())
    assert columns["total_ns"]["title"] == "GPU sum"
    assert columns["total_ns"]["header"] == "total [ns]"
    assert columns["total_ns"]["values"] == trace.kernels()["total_ns"].tolist()
    assert columns["total_ns"]["texts"][0].endswith(" ms")
    assert columns["name"]["values"] == []


@pytest.mark.parametrize("table", list(KNOWN))
def test_rows_lead_back_to_the_spans_they_were_made_of(trace, table):
    frame = getattr(trace, table)()
    for position in range(len(frame)):
        row = frame.iloc[[position]]
        if pd.isna(row["calls"].iloc[0]) or str(row.iloc[0].get("phase", "")).startswith("("):
            continue  # sums, and the rest of a call that no phase covers
        rows = rows_of(trace, table, row)
        spans = trace.spans.iloc[rows]
        assert len(spans) == row["calls"].iloc[0], row
        total = row.iloc[0].get("total_ns", row.iloc[0].get("host_total_ns"))
        assert spans["dur_ns"].sum() == total


def test_choosing_a_row_marks_its_spans(linked, trace):
    table, timeline = linked
    table.chosen = [1]
    name = trace.operators()["name"].iloc[1]
    assert table.selection["name"].tolist() == [name]
    assert timeline.marks["count"] == trace.operators()["calls"].iloc[1]
    marked = timeline.scene.frame(timeline.service.marks[1].nonzero()[0])
    assert set(marked["name"]) == {name}
    table.chosen = []
    assert timeline.marks["count"] == 0


def test_selecting_spans_marks_their_rows(linked, trace):
    table, timeline = linked
    row = int(trace.spans.index[trace.spans["name"] == "aten::gelu"][0])
    timeline.selected = {"kind": "span", "row": int(timeline.scene.scene_rows([row])[0])}
    assert [table.frame["name"].iloc[at] for at in table.marked] == ["aten::gelu"]
    timeline.selected = {}
    assert table.marked == []


def test_regrouping_computes_anew_and_keeps_the_way_back(linked, trace):
    table, timeline = linked
    version = table.version
    table.by = ["iteration"]
    assert table.version == version + 1
    assert table.frame.columns[:2].tolist() == ["name", "iteration"]
    table.chosen = [0]
    one = table.frame.iloc[0]
    assert len(table.spans) == one["calls"]
    assert set(table.spans["name"]) == {one["name"]}
    assert timeline.marks["count"] == one["calls"]


def test_a_wrong_grouping_is_told_and_changes_nothing(linked):
    table, _ = linked
    before = table.frame
    table.by = ["nonsense"]
    assert table.frame is before
    assert "nonsense" in ask(table)["trouble"]


def test_any_frame_can_be_shown(tmp_path):
    frame = pd.DataFrame({"name": ["a", "b"], "dur_ns": [1_000, None]})
    table = Table(frame)
    answer = ask(table)
    assert [column["texts"] for column in answer["columns"]] == [["a", "b"], ["1 µs", "–"]]
    assert table.write(tmp_path / "t.csv").exists()
    with pytest.raises(TorchTrtVizError, match="knows of no spans"):
        _ = table.spans


def test_long_tables_say_what_is_not_shown():
    frame = pd.DataFrame({"name": [str(i) for i in range(50)]})
    answer = ask(Table(frame, max_rows=20))
    assert (answer["rows"], answer["left_out"]) == (20, "30 more are not shown")


def test_wrong_options(trace):
    with pytest.raises(OptionError, match="operators, kernels"):
        Table(trace, "nonsense")
    with pytest.raises(OptionError, match="only for the operators"):
        Table(trace, "kernels", by="shape")
    with pytest.raises(OptionError, match="the same trace"):
        Table(trace, timeline=model_trace().timeline())


def test_the_explorer_links_every_table(trace):
    explorer = Explorer(trace)
    assert list(explorer.tables) == ["kernels", "operators", "layers", "phases", "delegates"]
    explorer.tables["kernels"].chosen = [0]
    assert explorer.timeline.marks["count"] == trace.kernels()["calls"].iloc[0]
    chosen = trace.kernels()["name"].iloc[0]
    assert explorer.selection.index.tolist() == trace.spans.index[trace.spans["name"] == chosen].tolist()
    assert repr(trace.explore()).startswith("<Explorer of <Trace")
