"""Browser windows and one JupyterLab for the tests; failures leave a picture."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from browser_lab import FLAGS, Lab, Visit


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in Path(str(item.fspath)).parts:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        values = [getattr(value, "visit", value) for value in item.funcargs.values()]
        visit = next((value for value in values if isinstance(value, Visit)), None)
        if visit is not None:
            picture = visit.folder / f"{item.name}.png"
            visit.page.screenshot(path=str(picture))
            report.sections.append(("picture of the failure", str(picture)))
            report.sections.append(("console", "\n".join(visit.errors)))


# Of a module and not of the session: while it lives, playwright keeps an event loop in the main thread, in
# which tests of other folders that run one of their own would fail.
@pytest.fixture(scope="module")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    made = []

    def open_(url, **options):
        one = Visit(chromium, tmp_path, **options)
        made.append(one)
        one.page.goto(url)
        return one

    yield open_
    for one in made:
        one.context.close()


@pytest.fixture(scope="module")
def shared_visit(chromium, tmp_path_factory):
    """The same for windows that a whole module shares."""
    made = []

    def open_(url, **options):
        one = Visit(chromium, tmp_path_factory.mktemp("pictures"), **options)
        made.append(one)
        one.page.goto(url)
        return one

    yield open_
    for one in made:
        one.context.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    server = Lab(tmp_path_factory.mktemp("lab"))
    yield server
    server.stop()
