"""The widget in a real Notebook 7: it draws, obeys the keyboard and keeps the notebook's shortcuts out."""

from __future__ import annotations

import pytest
from browser_lab import SETUP, Lab, Notebook

pytest.importorskip("notebook", reason="Notebook 7 is not installed (pip install 'notebook>=7,<8')")
pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module", params=["whole", "kernel"])
def notebook(request, shared_visit, tmp_path_factory):
    server = Lab(tmp_path_factory.mktemp("notebook7"), "notebook")
    limit = 300_000 if request.param == "whole" else 0
    made = Notebook(
        shared_visit(
            server.write(
                "timeline.ipynb",
                [SETUP + f"trace = model_trace()\nw = trace.timeline(whole_limit={limit})\nw", "1 + 1"],
            )
        )
    )
    yield made
    server.stop()
    assert made.visit.external == []
    assert [error for error in made.visit.errors if "blob:" in error] == []


def test_it_is_notebook_7_and_draws(notebook):
    assert notebook.page.evaluate("() => window.jupyterapp.name") == "Jupyter Notebook"
    assert notebook.page.locator(".tv-section").all_inner_texts()[:2] == ["GPU", "HOST"]
    assert notebook.visit.run("[...t.view.lanes.values()].filter((lane) => lane.mode > 0).length") >= 8
    # Host and GPU rows carry their colours: cool above, warm below.
    for section, cool in (("host", True), ("gpu", False)):
        y = notebook.visit.run(
            f"(() => {{ const r = t.rows.laneRows.find((r) => r.section === '{section}');"
            " return r.y - t.scroll + 9; })()"
        )
        colours = notebook.visit.run(
            "(() => { const d = t.parts.lanes.getContext('2d')"
            f".getImageData(0, Math.round({y} * t.ratio), t.parts.lanes.width, 1).data;"
            " let red = 0, blue = 0; for (let i = 0; i < d.length; i += 4) { red += d[i]; blue += d[i + 2]; }"
            " return [red, blue]; })()"
        )
        assert (colours[1] > colours[0]) is cool


def test_keys_move_it_and_do_not_reach_the_notebook(notebook):
    page = notebook.page
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    page.locator(".tv-root").focus()
    before = notebook.visit.run("t.range()")
    page.keyboard.press("w")
    notebook.wait(f"t.t1 - t.t0 < {(before['t1'] - before['t0']) * 0.9}")
    page.keyboard.press("d")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    notebook.wait("t.selected !== null")
    notebook.wait_python("len(w.selection) == 1")
    # In command mode each of these does something to the notebook: cut, delete, insert, change the type, run.
    for key in (
        "a",
        "b",
        "d",
        "d",
        "x",
        "c",
        "v",
        "m",
        "y",
        "z",
        "0",
        "0",
        "Shift+M",
        "Shift+V",
        "Escape",
        "1",
        "f",
    ):
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == cells
    assert page.locator(".jp-Dialog").count() == 0
    assert page.locator(".tv-root").evaluate("(e) => e === document.activeElement")
    notebook.python("w.select(); w.zoom()")
    notebook.wait("t.selected === null && t.t0 === 0")


def test_search_by_keyboard_reaches_python(notebook):
    notebook.page.locator(".tv-root").focus()
    notebook.page.keyboard.press("/")
    notebook.page.keyboard.type("gemm")
    notebook.page.keyboard.press("Enter")
    notebook.wait("/gemm/.test(t.selected?.name)")
    notebook.wait_python("w.search == 'gemm' and len(w.selection) == 1")
    expected = notebook.python("print(trace.spans['name'].astype(str).str.contains('gemm').sum())")
    notebook.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '{expected} matches'"
    )
    notebook.page.keyboard.press("Escape")
    notebook.python("w.select()")


def test_the_theme_follows_the_notebook(notebook):
    change = "(name) => window.jupyterapp.commands.execute('apputils:change-theme', { theme: name })"
    notebook.page.evaluate(f"async () => {{ await ({change})('JupyterLab Dark'); }}")
    notebook.wait("t.theme.dark")
    notebook.page.evaluate(f"async () => {{ await ({change})('JupyterLab Light'); }}")
    notebook.wait("!t.theme.dark")
