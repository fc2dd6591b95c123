"""The explorer's charts in a real JupyterLab: made when seen, chosen, in the notebook's theme, linked."""

from __future__ import annotations

import pytest
from browser_lab import SETUP, Notebook

pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
pytestmark = [pytest.mark.slow]


def test_charts_of_the_explorer(lab, shared_visit):
    code = "e = model_trace(steps=2).explore(height=120)\nfrom IPython.display import display\ndisplay(e)\n"
    notebook = Notebook(shared_visit(lab.write("charts.ipynb", [SETUP + code + "w = e.timeline"])))
    page = notebook.page
    assert notebook.python("print(len(e.charts.charts))") == "0"
    page.locator(".lm-TabBar-tab", has_text="Charts").last.click()
    page.wait_for_selector(".tv-charts figure[data-chart=layers]")
    page.locator(".tv-charts [role=tab]", has_text="critical path").click()
    page.wait_for_selector("figure[data-chart=critical_path]")
    notebook.wait_python("e.charts.chosen == 'critical_path'")
    page.get_by_text("mark on the timeline").click()
    notebook.wait_python("len(e.selection) > 0")
    page.locator(".tv-charts [role=tab]", has_text="flame").last.click()
    box = page.locator("figure[data-chart=flame] svg.b").nth(1)
    box.click()
    page.wait_for_selector("figure[data-chart=flame] svg.b.tv-now")
    ink = "getComputedStyle(document.querySelector('.tv-charts h3')).color"
    light = page.evaluate(ink)
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    page.wait_for_function(f"{ink} !== '{light}'")
    assert notebook.visit.external == []
    assert [error for error in notebook.visit.errors if "blob:" in error] == []
