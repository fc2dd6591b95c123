"""The widget in a real JupyterLab: draws, talks to the kernel both ways, keeps its keys to itself."""

from __future__ import annotations

import json

import pytest
from browser_lab import KERNEL_READY, SETUP, Notebook

pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module", params=["whole", "kernel"])
def notebook(request, lab, shared_visit):
    """One notebook where the browser holds the trace, one where the kernel answers every view."""
    limit = 300_000 if request.param == "whole" else 0
    url = lab.write(
        f"{request.param}.ipynb",
        [SETUP + f"trace = model_trace()\nw = trace.timeline(whole_limit={limit})\nw", "1 + 1"],
    )
    made = Notebook(shared_visit(url))
    assert made.visit.run("t.source.whole") is (request.param == "whole")
    yield made
    assert made.visit.external == []
    # The widget's module is a blob; the lab's own complaints are not ours to judge.
    assert [error for error in made.visit.errors if "blob:" in error] == []


def test_it_draws(notebook):
    sections = notebook.page.locator(".tv-section").all_inner_texts()
    assert sections[:2] == ["GPU", "HOST"]
    assert notebook.visit.run("[...t.view.lanes.values()].filter((lane) => lane.mode > 0).length") >= 8
    assert "SYNTHETIC DATA" in notebook.page.locator(".tv-status").inner_text()


def test_zoom_both_ways(notebook):
    notebook.python("w.zoom(1_000_000, 1_400_000)")
    notebook.wait("Math.abs(t.t0 - 1000000) < 1 && Math.abs(t.t1 - 1400000) < 1")
    notebook.page.locator(".tv-root").focus()
    notebook.page.keyboard.press("d")
    notebook.wait_python("w.view[0] > 1_000_000 and w.view[1] - w.view[0] == 400_000")
    notebook.python("w.zoom()")
    notebook.wait("t.t0 === 0")


def test_a_click_becomes_a_frame(notebook):
    notebook.python("w.zoom(0, 400_000)")
    notebook.wait("Math.abs(t.t1 - 400000) < 1")
    notebook.visit.settle()
    place = notebook.visit.run(
        "t.source.hit(t.rows.laneRows.find((r) => r.section === 'gpu').lane, 200000, 1e5)"
    )
    x, y = notebook.visit.rectangle(f"(await t.source.locate({place['row']}))")
    notebook.page.mouse.click(x, y)
    notebook.wait("t.selected !== null")
    notebook.wait_python("len(w.selection) == 1")
    assert notebook.python("print(w.selection['name'].iloc[0])") == place["name"]
    assert notebook.python("print(w.selection['domain'].iloc[0])") == "gpu"
    notebook.page.wait_for_function(
        "() => /registers per thread/.test(document.querySelector('.tv-panel').innerText)"
    )
    notebook.wait("t.links.length === 1")


def test_a_box_becomes_a_frame(notebook):
    notebook.python("w.zoom()")
    notebook.wait("t.t0 === 0")
    notebook.visit.settle()
    box = notebook.page.locator(".tv-lanes").bounding_box()
    top = box["y"] + notebook.visit.run("t.rows.laneRows.find((r) => r.section === 'host').y - t.scroll")
    notebook.page.mouse.move(box["x"] + 60, top + 5)
    notebook.page.mouse.down()
    notebook.page.mouse.move(box["x"] + 260, top + 50, steps=4)
    notebook.page.mouse.up()
    notebook.wait_python("len(w.selection) > 20")
    expected = (
        "(lambda t0, t1: set(trace.spans.index[(trace.spans['track'] == 0) & (trace.spans['depth'] < 3)"
        " & (trace.spans['start_ns'] + 30_000 <= t1)"
        " & (trace.spans['start_ns'] + 30_000 + trace.spans['dur_ns'] > t0)]))"
        "(w.selected['t0'], w.selected['t1'])"
    )
    lanes = notebook.visit.run("t.box.lanes.size")
    assert (
        notebook.python(f"s = {expected.replace('< 3', f'< {lanes}')}; print(s == set(w.selection.index))")
        == "True"
    )
    notebook.python("w.select()")
    notebook.wait("t.box === null && t.selected === null")


def test_select_from_python_shows_the_box(notebook):
    count = notebook.python("print(len(w.select(100_000, 300_000, tracks='stream 7')))")
    notebook.wait("t.box !== null && t.box.lanes.size === 1")
    notebook.page.wait_for_function(
        f"() => document.querySelector('.tv-panel').innerText.startsWith('{int(count)} events')"
    )
    notebook.python("w.select()")


def test_find_and_highlight_from_python(notebook):
    count = int(notebook.python("print(len(w.find('gemm')))"))
    notebook.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '{count} matches'"
    )
    notebook.visit.settle()
    notebook.wait("t.view.marked")
    notebook.page.locator(".tv-root").focus()
    notebook.page.keyboard.press("n")
    notebook.wait("/gemm/.test(t.selected?.name)")
    notebook.python("w.highlight(trace.operators().head(1))")
    notebook.page.wait_for_function(
        "() => /highlighted/.test(document.querySelector('.tv-matches').innerText)"
    )
    notebook.python("w.highlight(None)")
    notebook.wait("!t.view.marked")
    notebook.python("w.select()")
    notebook.wait("t.selected === null")


def test_a_highlight_from_python_is_scrolled_into_sight(notebook):
    notebook.python("w.zoom(); w.height = 120")
    notebook.wait("t.t0 === 0 && t.height <= 121")
    notebook.visit.run("(t.parts.scroll.scrollTop = 0)")
    notebook.visit.settle()
    engine = "t.rows.laneRows.find((r) => r.track.label === 'engine head_0')"
    assert notebook.visit.run(f"{engine}.y > t.scroll + t.height") is True
    calls = "trace.spans[trace.spans['kind'] == 'delegate']"
    notebook.python(f"w.highlight({calls}.head(3))")
    notebook.wait(f"{engine}.y + 19 <= t.scroll + t.height")
    at = notebook.visit.run("t.scroll")
    count = notebook.python(f"print(w.highlight({calls}))")  # is in sight: nothing moves
    notebook.wait(f"/^{count} highlighted/.test(t.parts.matches.innerText)")
    notebook.visit.settle()
    assert notebook.visit.run("t.scroll") == at
    notebook.python("w.highlight(None); w.height = 420")
    notebook.wait("!t.view.marked && t.height > 200")


def test_search_in_the_browser_reaches_python(notebook):
    notebook.page.locator(".tv-root").focus()
    notebook.page.keyboard.press("/")
    notebook.page.keyboard.type("nccl")
    notebook.wait_python("w.search == 'nccl'")
    expected = notebook.python("print((trace.spans['name'] == 'nccl:all_reduce').sum())")
    notebook.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText.startsWith('{expected} match')"
    )
    notebook.page.keyboard.press("Escape")
    notebook.wait_python("w.search == ''")


SENT = """() => {
  const model = document.querySelector('.tv-root').timeline.source.wire.model;
  if (!window.sent) {
    window.sent = [];
    const send = model.send.bind(model);
    model.send = (content, ...more) => { window.sent.push(content); return send(content, ...more); };
  }
  window.sent.length = 0;
}"""


def test_a_search_and_its_first_match_cost_one_message(notebook):
    if notebook.visit.run("t.source.whole"):
        pytest.skip("needs no message at all")
    notebook.python("w.zoom()")
    notebook.wait("t.t0 === 0")
    notebook.visit.settle()
    notebook.page.evaluate(SENT)
    notebook.page.locator(".tv-search").focus()
    notebook.visit.run("(t.parts.search.value = 'gelu')")  # at once: typing searches after a pause by itself
    notebook.page.keyboard.press("Enter")
    notebook.wait("/gelu/.test(t.selected?.name) && !t.parts.panel.hidden")
    sent = notebook.page.evaluate("() => window.sent.map((m) => m.requests?.map((r) => r.op) ?? [m.op])")
    assert sent[0] == ["search", "view", "step"]
    # The details and links came with the match.
    assert {op for ops in sent[1:] for op in ops} <= {"view", "counters"}
    names = "trace.spans['name'].astype(str)"
    expected = notebook.python(f"print({names}.str.contains('gelu', case=False).sum())")
    notebook.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '1 of {expected}'"
    )
    notebook.wait_python("len(w.selection) == 1")
    notebook.page.keyboard.press("Escape")
    notebook.python("w.select()")
    notebook.wait("t.selected === null && !t.view.marked")


def test_a_wide_step_shows_what_is_known_before_the_kernel_answers(notebook):
    if notebook.visit.run("t.source.whole"):
        pytest.skip("the browser computes every view itself")
    notebook.python("w.zoom()")
    notebook.wait("t.t0 === 0")
    notebook.visit.settle()
    ink = (
        "(() => { const d = t.parts.lanes.getContext('2d').getImageData(0, 0, t.parts.lanes.width, 60).data;"
        " let n = 0; for (let i = 0; i < d.length; i += 4) n += Math.abs(d[i + 2] - d[i]) > 40;"
        " return n; })()"
    )
    everything = notebook.visit.run(ink)
    notebook.visit.run("t.setRange(t.length * 0.5, t.length * 0.501)")
    notebook.visit.settle()
    # Zoomed out again, the picture is there in the same task, while the request is still under way.
    at_once = notebook.visit.run(f"(t.setRange(0, t.length), t.drawNow(), [t.fetching, {ink}])")
    assert at_once[0] is True
    assert everything > 300
    assert at_once[1] > 0.5 * everything
    notebook.visit.settle()
    assert notebook.visit.run(ink) == everything


def test_arranging_reaches_python_and_comes_back(notebook):
    notebook.page.locator(".tv-root").focus()
    notebook.page.keyboard.press("c")
    notebook.wait_python("len(w.arrangement['collapsed']) == 1")
    notebook.python("w.arrangement = {}")
    notebook.wait("t.rows.layout.collapsed.length === 0")


def test_keys_do_not_reach_the_notebook(notebook):
    cells = notebook.page.locator(".jp-Notebook .jp-Cell").count()
    notebook.page.locator(".tv-root").focus()
    for key in (
        "a",
        "b",
        "d",
        "d",
        "x",
        "c",
        "c",
        "m",
        "z",
        "0",
        "0",
        "Shift+M",
        "Enter",
        "Escape",
        "f",
        "1",
        "s",
    ):
        notebook.page.keyboard.press(key)
    notebook.page.wait_for_timeout(200)
    assert notebook.page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert notebook.page.locator(".tv-root").evaluate("(e) => e === document.activeElement")
    assert notebook.page.locator(".jp-Dialog").count() == 0
    notebook.python("w.select(); w.zoom()")


def test_the_theme_follows_the_lab(notebook):
    set_theme = "(name) => window.jupyterapp.commands.execute('apputils:change-theme', { theme: name })"
    assert notebook.visit.run("t.theme.dark") is False
    notebook.visit.run("(t.parts.scroll.scrollTop = 0)")  # the pixel is one of the first section's band
    notebook.page.evaluate(f"async () => {{ await ({set_theme})('JupyterLab Dark'); }}")
    notebook.wait("t.theme.dark")
    notebook.wait(
        "(t.width > 20 && t.parts.lanes.getContext('2d').getImageData(t.width - 9, 5, 1, 1).data[0] < 100)"
    )
    notebook.page.evaluate(f"async () => {{ await ({set_theme})('JupyterLab Light'); }}")
    notebook.wait("!t.theme.dark")
    notebook.python("w.theme = 'dark'")
    notebook.wait("t.theme.dark")
    notebook.python("w.theme = 'auto'")
    notebook.wait("!t.theme.dark")


def test_it_answers_while_a_cell_runs(notebook, tmp_path):
    """Messages go to a subshell: a long cell does not freeze the timeline.

    The cell runs until the timeline has answered.
    """
    answered = tmp_path / "answered"
    # The lab opens the subshell with the first message, and anew when its settings change.
    notebook.visit.run("t.source.detail(0)")
    notebook.page.evaluate(
        """(code) => {
          const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
          window.slow = kernel.requestExecute({ code, store_history: false }).done;
        }""",
        f"import os, time\nwhile not os.path.exists({str(answered)!r}): time.sleep(0.01)",
    )
    notebook.visit.run("t.setRange(t.length * 0.2, t.length * 0.21)")
    notebook.visit.settle()
    notebook.wait("t.view.t0 > 0 && (t.view.t1 - t.view.t0) < t.length * 0.03")
    answered.touch()
    notebook.page.evaluate("async () => { await window.slow; }")


def test_the_picture_comes_to_python(notebook, tmp_path):
    target = tmp_path / "view.png"
    notebook.python(f"w.save_picture({str(target)!r})")
    for _ in range(60):
        if target.exists():
            break
        notebook.page.wait_for_timeout(50)
    assert target.read_bytes()[:4] == b"\x89PNG"


def test_a_second_view_of_the_same_widget(notebook):
    """Both views share the state and each gets its own answers."""
    notebook.page.evaluate(
        """() => {
          const panel = window.jupyterapp.shell.currentWidget;
          panel.content.activeCellIndex = 1;
          panel.content.activeCell.model.sharedModel.setSource('w');
          window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    notebook.page.wait_for_function(
        "() => { const r = document.querySelectorAll('.tv-root');"
        " return r.length === 2 && r[1].timeline?.view; }"
    )
    notebook.python("w.zoom(500_000, 700_000)")
    notebook.page.wait_for_function(
        "() => [...document.querySelectorAll('.tv-root')].every((r) => Math.abs(r.timeline.t0 - 500000) < 1)"
    )


def test_the_explorer_links_timeline_and_tables(lab, visit):
    url = lab.write("explorer.ipynb", [SETUP + "trace = model_trace(hostile=True)\ne = trace.explore()\ne"])
    notebook = Notebook(visit(url))
    page = notebook.page
    page.wait_for_function("() => document.querySelectorAll('.tt-root .tt-table tbody td').length > 10")
    at = int(notebook.python("print(list(e.tables).index('operators'))"))  # the biggest table stands first
    page.get_by_role("tab", name="Operators").click()
    grid = page.locator(".tt-root").nth(at)
    row = grid.locator("tbody tr", has_text="aten::linear").first
    row.click()
    count = int(notebook.python("print(e.trace.operators().set_index('name')['calls']['aten::linear'])"))
    page.wait_for_function(f"() => document.querySelector('.tv-matches').innerText === '{count} highlighted'")
    assert notebook.python("print(len(e.tables['operators'].spans))") == str(count)
    # The reverse: a span selected in the timeline marks its row.
    notebook.python("e.timeline.select(0, 60_000, tracks='main')")
    page.wait_for_selector(".tt-root .tt-marked")
    # Sorting and filtering by keyboard and mouse; nothing reaches the notebook.
    grid.locator("th", has_text="calls").first.click()
    calls = [int(t) for t in grid.locator("tbody tr:not(.tt-spacer) td:nth-child(2)").all_inner_texts()]
    assert calls == sorted(calls, reverse=True)
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", "a", "b", "d", "d", "Enter"):
        page.keyboard.press(key)
    notebook.wait_python("len(e.tables['operators'].chosen) == 1")
    page.keyboard.press("/")
    page.keyboard.type("<img")
    page.wait_for_function(f"() => document.querySelectorAll('.tt-root')[{at}].innerText.includes('1 of ')")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert page.evaluate("() => window.hacked") is None
    text = page.evaluate(f"() => document.querySelectorAll('.tt-root')[{at}].table.text(',')")
    assert text.splitlines()[0].startswith('"name","calls"')
    # Grouping computes anew in the kernel.
    page.keyboard.press("Escape")
    grid.get_by_label("group by").select_option("shape")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.tt-root th')].some((h) => h.innerText === 'shape')"
    )
    assert notebook.visit.external == []
    assert [error for error in notebook.visit.errors if "blob:" in error] == []


def test_without_a_kernel_the_trace_still_shows_its_static_form(lab, visit):
    name = "static.ipynb"
    url = lab.write(name, [SETUP + "model_trace()"])
    one = visit(url)
    one.page.wait_for_selector(".jp-Notebook")
    one.page.wait_for_function(KERNEL_READY)
    one.page.click(".jp-Notebook .jp-Cell >> nth=0 >> .cm-content")
    one.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    one.page.wait_for_selector("text=GPU time")
    one.page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")
    # What a viewer without trust shows of the saved file: the sanitiser leaves the strip and the tables.
    saved = json.loads((lab.root / name).read_text())
    html = "".join(saved["cells"][0]["outputs"][0]["data"]["text/html"])
    assert "<script" not in html
    strip = one.page.locator(".jp-RenderedHTMLCommon div[style*='background']").count()
    assert strip > 20
