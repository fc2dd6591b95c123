"""The theme follows whatever page the widget is in: Jupyter, VS Code, Colab, an own page, the system."""

from __future__ import annotations

import pytest

from torchtrt_viz.scene import assets

#: attributes of <body>, attributes of <html>, whether the system is dark -> whether the widget must be
PLACES = [
    pytest.param({"data-jp-theme-light": "false", "data-jp-theme-name": "JupyterLab Dark"}, {}, False, True),
    pytest.param({"data-jp-theme-light": "true", "data-jp-theme-name": "JupyterLab Light"}, {}, True, False),
    pytest.param({"class": "vscode-dark", "data-vscode-theme-kind": "vscode-dark"}, {}, False, True),
    pytest.param({"class": "vscode-light", "data-vscode-theme-kind": "vscode-light"}, {}, True, False),
    pytest.param({"class": "notebook vscode-dark"}, {}, False, True),
    pytest.param({"class": "notebook vscode-light"}, {}, True, False),
    pytest.param({"class": "vscode-high-contrast"}, {}, False, True),
    pytest.param({"data-vscode-theme-kind": "vscode-high-contrast-light"}, {}, True, False),
    pytest.param({}, {"theme": "dark"}, False, True),
    pytest.param({}, {"theme": "light"}, True, False),
    pytest.param({}, {"data-theme": "dark"}, False, True),
    pytest.param({}, {}, True, True),
    pytest.param({}, {}, False, False),
    pytest.param({"class": "unrelated darkness"}, {}, False, False),
]

SET = """([body, html]) => {
  for (const [element, wanted] of [[document.body, body], [document.documentElement, html]]) {
    for (const name of ['class', 'theme', 'data-theme', 'data-jp-theme-light', 'data-jp-theme-name', 'data-vscode-theme-kind']) {
      element.removeAttribute(name);
    }
    for (const [name, value] of Object.entries(wanted)) element.setAttribute(name, value);
  }
}"""  # noqa: E501


@pytest.fixture(scope="module")
def pages(shared_visit, tmp_path_factory):
    """A page for a light and one for a dark system, with nothing of any notebook in it."""
    file = tmp_path_factory.mktemp("theme") / "theme.html"
    file.write_text(
        f"<!doctype html><body></body><script>{assets.module('theme')}\nwindow.changes = 0;\n"
        "window.unwatch = m_theme.watchSurroundings(() => { window.changes++; });</script>"
    )
    return {
        dark: shared_visit(file.as_uri(), color_scheme="dark" if dark else "light").page
        for dark in (False, True)
    }


@pytest.mark.parametrize(("body", "html", "system_dark", "expected"), PLACES)
def test_dark_where_the_surroundings_are(pages, body, html, system_dark, expected):
    page = pages[system_dark]
    before = page.evaluate("() => window.changes")
    page.evaluate(SET, [body, html])
    assert page.evaluate("() => m_theme.surroundingsDark()") is expected
    if body or html:
        page.wait_for_function(f"() => window.changes > {before}")


def test_the_system_changes_while_the_page_is_open(pages):
    page = pages[False]
    page.evaluate(SET, [{}, {}])
    page.wait_for_timeout(20)
    before = page.evaluate("() => window.changes")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => window.changes > {before}")
    assert page.evaluate("() => m_theme.surroundingsDark()") is True
    page.emulate_media(color_scheme="light")
    assert page.evaluate("() => m_theme.surroundingsDark()") is False


def test_a_widget_that_is_gone_listens_to_nothing(shared_visit, pages):
    page = pages[True]
    page.evaluate("() => { window.unwatch(); window.changes = 0; }")
    page.evaluate(SET, [{"data-jp-theme-light": "false"}, {"theme": "dark"}])
    page.wait_for_timeout(50)
    assert page.evaluate("() => window.changes") == 0
