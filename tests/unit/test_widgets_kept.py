"""The static form that a notebook keeps of a widget: published once, before the widget's own output."""

from __future__ import annotations

from html.parser import HTMLParser
from types import SimpleNamespace

import pandas as pd
import pytest
from timeline_traces import model_trace

pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")

from torchtrt_viz.widgets.table import Table

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def published(monkeypatch):
    """What a shell with a notebook in front of it was told to display."""
    out = []
    shell = SimpleNamespace(kernel=object(), display_pub=SimpleNamespace(publish=out.append))
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    return out


class Rows(HTMLParser):
    """The texts of a table's cells, row by row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1] and self.lasttag in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("make", ["timeline", "explore", "table"])
def test_it_is_an_output_of_its_own(published, make):
    trace = model_trace()
    widget = Table(trace) if make == "table" else getattr(trace, make)()
    data, _ = widget._repr_mimebundle_()
    assert set(data) == {"text/plain", VIEW}
    assert [set(one) for one in published] == [{"text/html"}], (
        "a terminal form beside it would be shown twice"
    )
    html = published[0]["text/html"]
    assert html.startswith(f'<div class="tv-kept-{widget.kept}">')
    assert widget.static_form() in html
    assert "<script" not in html
    assert "<style" not in html


def test_the_front_end_knows_its_name(published):
    one, other = model_trace().timeline(), model_trace().timeline()
    assert one.get_state()["kept"] == one.kept != other.kept
    explorer = model_trace().explore()
    assert explorer.kept == explorer.timeline.kept
    assert all(table.kept != explorer.kept for table in explorer.tables.values())


def test_one_that_is_to_keep_nothing(published):
    widget = model_trace().timeline()
    widget.kept = ""
    assert set(widget._repr_mimebundle_()[0]) == {"text/plain", VIEW}
    assert published == []


def test_where_no_kernel_runs_it_is_a_form_of_the_output(published, monkeypatch):
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: None)
    table = Table(model_trace())
    assert table._repr_mimebundle_()[0]["text/html"] == table.static_form()
    assert published == []


def test_the_explorer_keeps_every_table(published):
    explorer = model_trace(hostile=True).explore()
    form = explorer.static_form()
    assert form.startswith(explorer.verdict.static_form())
    assert explorer.timeline.still in form
    for heading in ("Operators (host time)", "Kernels (GPU time)", "Delegates (host time)"):
        assert heading in form
    assert not {"img", "script", "b1"} & Rows(form).tags


def test_a_table_keeps_its_first_rows_and_the_columns_with_values():
    frame = pd.DataFrame({"name": [f"<i>{n}" for n in range(13)], "void": [None] * 13, "dur_ns": range(13)})
    html = Table(frame).static_form()
    read = Rows(html)
    assert read.rows[1] == ["<i>0", "0 ns"]
    assert len(read.rows) == 11
    assert len(read.rows[0]) == 2
    assert "3 rows more, not shown" in html
    assert "not shown" not in Table(frame.head(10)).static_form()
    assert Rows(Table(frame.head(0)).static_form()).rows[0] != []
