"""The documentation site: it builds without a warning, holds what it is made of, and needs no network."""

from __future__ import annotations

import os
import re
import subprocess
from html import unescape
from importlib.util import find_spec
from pathlib import Path

import pytest
from native_build import tool

import torchtrt_viz as tv

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("mkdocs", "mkdocstrings", "nbconvert")),
    reason="the documentation site needs the extra docs (pip install 'torchtrt-viz[docs]')",
)


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; no proxy answers, so that a request would fail the build."""
    folder = tmp_path_factory.mktemp("site")
    nowhere = {
        name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    }
    done = subprocess.run(
        [tool("mkdocs"), "build", "--strict", "--site-dir", str(folder)],
        cwd=root,
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "WARNING" not in done.stderr
    return folder


def _text(page: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_every_public_name_has_an_entry(site: Path):
    headings = set()
    for page in (site / "api").glob("*.html"):
        headings |= set(re.findall(r'<h[2-5] id="([\w.]+)"', page.read_text()))
    documented = {name.rpartition(".")[2] for name in headings}
    for namespace in (tv.analysis, tv.capture, tv.aot, tv.serving):
        names = {name for name in namespace.__all__ if not name.startswith("_")}
        assert names <= documented, names - documented
    assert {"torchtrt_viz.trace.Trace.operators", "torchtrt_viz.widgets.charts.layers"} <= headings
    assert "torchtrt_viz.errors.TraceFormatError" in headings


def test_every_frame_has_its_columns(site: Path):
    page = (site / "schema.html").read_text()
    frames = tv.schema.frames()
    assert {"spans", "operators", "session.ranks"} <= set(frames["name"])
    sections = dict(re.findall(r'<h2 id="schema\.[\w.-]+">([^<]+)<(.*?)(?=<h2|\Z)', page, re.DOTALL))
    assert set(sections) == set(frames["name"])
    for name in frames["name"]:
        rows = re.findall(r"<tr>\s*<td><code>([^<]+)</code></td>", sections[name])
        assert rows == tv.schema.table(name).names, name


def test_a_method_that_returns_a_frame_leads_to_its_columns(site: Path):
    page = (site / "api" / "top.html").read_text()
    assert 'href="../schema.html#schema.operators"' in page


@pytest.mark.parametrize("role", [":func:", ":class:", ":meth:", ":mod:", ":attr:", ":data:"])
def test_no_markup_of_another_kind_is_left(site: Path, role: str):
    assert [page.name for page in (site / "api").glob("*.html") if role in _text(page)] == []


def test_notebooks_are_pages(site: Path, root: Path):
    names = {path.stem for path in (root / "notebooks").glob("*.ipynb")}
    assert len(names) >= 7
    assert {path.stem for path in (site / "notebooks").glob("*.html")} == names


def test_nothing_is_loaded_from_elsewhere(site: Path):
    loaded = re.compile(
        r"""<(?:link|script|img|iframe)\b[^>]*(?:src|href)=["'](?:https?:)?//|url\(["']?(?:https?:)?//"""
    )
    for path in site.rglob("*"):
        if path.suffix in (".html", ".css"):
            assert not loaded.search(path.read_text()), path
