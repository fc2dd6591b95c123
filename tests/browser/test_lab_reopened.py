"""A saved notebook opened again: what it kept of its widgets is there when they cannot be."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from browser_lab import KERNEL_READY, SETUP, Notebook

pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
pytestmark = [pytest.mark.slow]

CELLS = [
    SETUP + "trace = model_trace()\nw = trace.timeline(whole_limit=0)\nw",
    "trace.explore()",
    "from torchtrt_viz.widgets.table import Table\nTable(trace, 'kernels')",
]
KEPT = "[class^=tv-kept-]"
STATE = "@jupyter-widgets/jupyterlab-manager/plugin"
SHUT = "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }"
SAVE = "async () => { await window.jupyterapp.commands.execute('docmanager:save'); }"
THEME = (
    "async (name) => { await window.jupyterapp.commands.execute('apputils:change-theme', { theme: name }); }"
)
ALL_LIVE = """() => {
  const drawn = [...document.querySelectorAll('.tv-root')].filter((root) => root.timeline?.draws > 0);
  return drawn.length === 2 && document.querySelectorAll('.tt-root tbody td').length > 10;
}"""


@pytest.fixture(scope="module", params=[False, True], ids=["without state", "with state"])
def saved(request, lab, shared_visit):
    """A notebook that ran, was looked at and saved; its window, where the widgets are live."""
    lab.set(STATE, {"saveState": request.param})
    name = "state.ipynb" if request.param else "plain.ipynb"
    notebook = Notebook(shared_visit(lab.write(name, CELLS), viewport={"width": 1300, "height": 2600}))
    notebook.page.wait_for_function(ALL_LIVE)
    notebook.page.evaluate(SAVE)
    notebook.file = lab.root / name
    notebook.with_state = request.param
    content = json.loads(notebook.file.read_text())
    assert ("widgets" in content["metadata"]) is request.param
    # Tests change this window and not the file.
    notebook.url = lab.url(name)
    yield notebook
    lab.set(STATE, {})


def test_the_live_widgets_hide_what_is_kept(saved):
    page = saved.page
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(THEME, theme)
        page.wait_for_timeout(300)
        kept = page.locator(KEPT)
        assert kept.count() == 3
        assert [kept.nth(at).is_visible() for at in range(3)] == [False] * 3
        # And leave no gap.
        outputs = page.locator(f".jp-OutputArea-child:has({KEPT})")
        assert max(outputs.nth(at).bounding_box()["height"] for at in range(3)) < 12
        page.screenshot(path=str(saved.visit.folder / f"live {theme}.png"))
    assert saved.visit.external == []


def test_the_file_holds_it_once_and_without_scripts(saved):
    cells = json.loads(saved.file.read_text())["cells"]
    for cell, words in zip(cells, ("stream 7", "stream 7", "Kernels"), strict=True):
        forms = ["".join(output["data"].get("text/html", "")) for output in cell["outputs"]]
        assert [bool(form) for form in forms] == [True, False]
        assert words in forms[0]
        assert "<script" not in forms[0]
    explorer = "".join(cells[1]["outputs"][0]["data"]["text/html"])
    for word in ("SYNTHETIC DATA", "Operators (host time)", "aten::linear", "Kernels (GPU time)", "conv_0"):
        assert word in explorer


def shows_it(page):
    """Whether all that is kept is to be seen, as it was made."""
    page.wait_for_function(
        f"() => {{ const kept = [...document.querySelectorAll('{KEPT}')];"
        " return kept.length === 3 && kept.every((form) => form.checkVisibility()); }",
        timeout=20_000,
    )
    kept = page.locator(KEPT)
    assert kept.nth(0).locator("div[style*='background']").count() > 20
    assert kept.nth(0).bounding_box()["height"] > 100
    assert kept.nth(1).locator("table").count() == 5
    assert "aten::linear" in kept.nth(1).inner_text()
    assert "ampere_sgemm_128x64_tn" in kept.nth(2).inner_text()


def test_a_kernel_restarted_under_it_leaves_the_picture(saved):
    """The window still holds what was drawn."""
    saved.page.evaluate(
        "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
    )
    saved.page.wait_for_function(KERNEL_READY)
    saved.page.wait_for_function("() => /restarted/.test(document.querySelector('.tv-banner').innerText)")
    # What nobody can answer any more is not asked for: the picture stays sharp.
    before = saved.visit.run("[t.t0, t.t1]")
    saved.visit.run("t.setRange(t.length * 0.4, t.length * 0.41)")
    assert saved.visit.run("[t.t0, t.t1]") == before
    saved.page.screenshot(path=str(saved.visit.folder / "restarted.png"))
    assert saved.page.evaluate(ALL_LIVE) is True
    assert saved.page.locator(".tv-lanes").first.is_visible()
    ink = (
        "(() => { const d = t.parts.lanes.getContext('2d').getImageData(0, 0, t.parts.lanes.width, 60).data;"
        " let n = 0; for (let i = 0; i < d.length; i += 4) n += Math.abs(d[i + 2] - d[i]) > 40;"
        " return n; })()"
    )
    assert saved.visit.run(ink) > 300


def test_reopened_with_a_fresh_kernel(saved, visit):
    saved.page.evaluate(SHUT)
    one = visit(saved.url, viewport={"width": 1300, "height": 2600})
    one.page.wait_for_selector(".jp-Notebook")
    one.page.wait_for_function(KERNEL_READY)
    if saved.with_state:
        one.page.wait_for_selector("text=No kernel answers >> nth=2")
        assert one.page.locator(".tv-still").count() == 0, "one picture, not two"
    else:
        one.page.wait_for_selector("text=Error displaying widget >> nth=2")
    shows_it(one.page)
    one.page.screenshot(path=str(one.folder / "fresh.png"))
    # Run again, the live ones take its place.
    one.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    one.page.wait_for_function(ALL_LIVE)
    assert not any(one.page.locator(KEPT).nth(at).is_visible() for at in range(3))
    one.page.evaluate(SHUT)
    assert one.external == []


def test_reopened_without_a_kernel(saved, visit):
    one = visit(saved.url.split("/lab/tree")[0] + "/lab?reset&" + saved.url.split("&")[1])
    one.page.set_viewport_size({"width": 1300, "height": 2600})
    one.page.wait_for_function("() => !!window.jupyterapp")
    one.page.evaluate(
        """async (path) => {
          await window.jupyterapp.restored;
          const kernelPreference = { shouldStart: false, canStart: true, autoStartDefault: false };
          const options = { path, factory: 'Notebook', kernelPreference };
          await window.jupyterapp.commands.execute('docmanager:open', options);
        }""",
        saved.file.name,
    )
    one.page.wait_for_selector(".jp-Notebook")
    shows_it(one.page)
    one.page.wait_for_timeout(6_000)  # longer than the widgets wait for an answer
    shows_it(one.page)
    one.page.screenshot(path=str(one.folder / "none.png"))
    kernel = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel ?? null"
    assert one.page.evaluate(f"() => {kernel} === null")
    assert one.external == []


def test_converted_to_a_page_and_opened_offline(saved, visit, tmp_path):
    pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    made = tmp_path / "page.html"
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output", str(made), str(saved.file)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    one = visit(made.as_uri(), viewport={"width": 1300, "height": 2600})  # every request outside is refused
    shows_it(one.page)
    one.page.screenshot(path=str(one.folder / "page.png"))
