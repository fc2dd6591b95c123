"""A verdict and the six answers where they are seen: one set of words as text, markup, page and widget."""

from __future__ import annotations

import html
import json
import re
from html import unescape

import pandas as pd
import pytest
from timeline_traces import model_trace
from trace_builder import Builder

from torchtrt_viz.analysis.answers.judgement import judge
from torchtrt_viz.report.answers import relevant
from torchtrt_viz.report.html import page
from torchtrt_viz.report.verdict.html import static_verdict
from torchtrt_viz.report.verdict.words import verdict_words

HOSTILE = "<img src=x onerror=alert(1)>'\""


@pytest.fixture(scope="module")
def trace():
    return model_trace()


def test_page_and_notebook_say_the_same(trace) -> None:
    words = verdict_words(judge(trace))
    made = page(trace)
    section = made[made.index('<section id="verdict"') : made.index('<section id="timeline"')]
    told = html.unescape(re.sub(r"<[^>]*>", "\n", section))
    still = html.unescape(re.sub(r"<[^>]*>", "\n", static_verdict(words)))
    text = " ".join(repr(trace.verdict()).split())
    assert words.findings
    for finding in words.findings:
        for sentence in (finding.head, finding.evidence, finding.saving):
            assert sentence in told
            assert sentence in still
            assert sentence in text
    assert [bar.label for bar in words.bars] == ["HOST", "GPU"]


def test_a_button_shows_the_rows_that_prove_a_finding(trace) -> None:
    judged = judge(trace)
    made = page(trace)
    section = made[made.index('<section id="verdict"') : made.index('<section id="timeline"')]
    requests = [json.loads(html.unescape(found)) for found in re.findall(r'data-show="([^"]*)"', section)]
    with_place = [one for one in judged.findings if one.evidence.view(trace) is not None]
    assert len(requests) == len(with_place)
    first = int(trace.spans["start_ns"].min())
    for request, finding in zip(requests, with_place, strict=True):
        begin, end = finding.evidence.view(trace)
        assert request["t1"] - request["t0"] == end - begin
        assert abs(request["t0"] - (begin - first)) <= 30_000  # the axis begins with the first event
        assert len(request.get("rows", ())) == min(len(finding.evidence.rows), 1_000)


def test_the_first_table_is_the_one_that_explains_most(trace) -> None:
    made = page(trace)
    places = {name: made.index(f'<section id="{name}"') for name in ("kernels", "operators", "summary")}
    assert sorted(places, key=places.__getitem__) == ["kernels", "operators", "summary"]


def test_a_trace_without_delegates_has_no_card_about_them() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    b.span("aten::mm", 0, 100, main)
    b.span("gemm", 50, 100, gpu, "kernel")
    trace = b.build()
    assert len(trace.questions()) == 6
    assert len(relevant(trace.questions())) == 0
    assert 'id="questions"' not in page(trace)


def test_questions_are_a_frame_that_shows_short_answers(trace) -> None:
    table = trace.questions()
    assert type(table.head(2)) is pd.DataFrame
    markup = table._repr_html_()
    assert markup.count("<details") == 6
    assert "Phases of delegate calls" in markup
    assert not re.search(r"<(script|style|svg|button)", markup)
    assert repr(table).startswith("1. Which TensorRT and other delegate regions ran?")


def test_a_finding_stands_apart_from_its_number_where_styles_are_taken_away(trace) -> None:
    verdict = trace.verdict()
    text = re.sub(r"<[^>]+>", "", verdict._repr_html_())
    assert len(verdict) > 0
    for row in verdict.itertuples():
        assert f"{row.number}. {row.finding}" in unescape(text)


def test_names_from_files_are_text() -> None:
    b = Builder()
    main, gpu = b.track("main"), b.stream(7)
    for step in range(3):
        b.span("cudaLaunchKernel", 1000 * step, 10, main, "runtime", correlation=step + 1)
        b.span(HOSTILE, 1000 * step + 20, 700, gpu, "kernel", correlation=step + 1)
    trace = b.build()
    for markup in (static_verdict(verdict_words(judge(trace))), page(trace), trace.verdict()._repr_html_()):
        assert "<img" not in markup
    assert HOSTILE[:20] in repr(trace.verdict())


def test_show_marks_selects_and_zooms(trace) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    explorer = trace.explore()
    panel = explorer.verdict
    for number, finding in enumerate(panel.judged.findings, start=1):
        view = finding.evidence.view(trace)
        if view is None or not len(finding.evidence.rows):
            continue
        panel.show(number)
        assert sorted(explorer.selection.index) == sorted(finding.evidence.rows)
        assert explorer.timeline.view[1] - explorer.timeline.view[0] == view[1] - view[0]
    with pytest.raises(IndexError):
        panel.show(len(panel.judged.findings) + 1)


def test_messages_of_the_panel_that_make_no_sense_do_nothing(trace) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    panel = trace.explore().verdict
    for content in (
        {},
        {"op": "show"},
        {"op": "show", "number": 99},
        {"op": "x", "number": 0},
        {"number": "1"},
    ):
        panel._on_message(None, content, [])
    assert eval(panel.expression(1), {"trace": trace}) is not None


def test_engines_and_layers_have_readable_names_and_keep_their_keys() -> None:
    b = Builder()
    main = b.track("main")
    engine = "69d1c8df6f0a0af6-forward-0"
    layer = "[LINEAR]-[aten_ops.linear.default]-[/mlp/1/linear]"
    for run in range(5):
        t = 1000 * run
        b.span("DELEGATE_CALL", t, 900, main, "delegate", run_id=engine)
        b.span(layer, t + 10, 700, main, "layer", run_id=engine)
        b.span("other", t + 720, 100, main, "layer", run_id=engine)
    made = page(b.build())
    assert f'data-name="{html.escape(layer)}" title="{html.escape(layer)}">mlp/1/linear</button>' in made
    assert f'title="{engine}">forward-0</td>' in made
