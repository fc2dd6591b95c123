"""Every notebook runs from top to bottom in a clean kernel, and is kept with what it shows without one.

`python notebooks/execute.py` makes the outputs again.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEED_EXECUTORCH = {"quickstart", "executorch_delegates", "opaque_pt2", "compare_runs"}


@pytest.fixture(scope="module")
def execute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(execute: ModuleType) -> nbformat.NotebookNode:
    """A notebook of one cell that has nothing against it: a picture, and a finding in words."""
    picture = nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg/>", "text/plain": "picture"})
    finding = nbformat.v4.new_output("stream", name="stdout", text="host 4 ms, GPU 2 ms\n")
    cell = nbformat.v4.new_code_cell("show()", execution_count=1, outputs=[picture, finding])
    notebook = nbformat.v4.new_notebook(cells=[cell])
    assert list(execute.faults(notebook)) == []
    return notebook


def test_there_are_notebooks():
    assert {"quickstart", "executorch_delegates", "compare_runs"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_with_outputs_that_need_no_kernel(path: Path, execute: ModuleType):
    assert list(execute.faults(nbformat.read(path, as_version=4))) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_kept_is_clean(path: Path, execute: ModuleType):
    notebook = nbformat.read(path, as_version=4)
    assert execute.clean(notebook) == notebook


@pytest.mark.parametrize(
    "text",
    [
        "'/tmp/tmpabcd1234/run.json'",
        "/home/someone/trace.json",
        "at 2026-01-31 12:30:05",
        "session 20260131-123005",
        "<Net at 0x7f00aa11bb22>",
    ],
)
def test_what_tells_of_a_machine_is_a_fault(text: str, small: nbformat.NotebookNode, execute: ModuleType):
    small.cells[0].outputs[0].data["text/plain"] = text
    (fault,) = execute.faults(small)
    assert "one machine" in fault


def test_a_widget_and_its_state_are_left_out(small: nbformat.NotebookNode, execute: ModuleType):
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "<Timeline>"}
    form = {"text/html": f'<div class="tv-kept-{"0" * 32}">strip</div>'}
    small.cells[0].outputs += [
        nbformat.v4.new_output("display_data", form),
        nbformat.v4.new_output("display_data", view),
        nbformat.v4.new_output("stream", name="stderr", text="a warning of this machine"),
    ]
    small.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {}}
    assert len(list(execute.faults(small))) == 2
    clean = execute.clean(small)
    assert list(execute.faults(clean)) == []
    kinds = [list(output.get("data", {"text": ""})) for output in clean.cells[0].outputs]
    assert kinds == [["image/svg+xml", "text/plain"], ["text"], ["text/html"]]
    assert (
        clean.cells[0].outputs[2].data["text/html"] == f'<div class="tv-kept-{clean.cells[0].id}">strip</div>'
    )


def test_paths_are_kept_from_the_checkout_on(
    small: nbformat.NotebookNode, execute: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TORCHTRT_VIZ_SHARED", "/data/reference")
    root = str(FOLDER.parent)
    text = f"{root}/torchtrt_viz/x.py:3, {root[:5]}…, /data/reference/corpus/a.json"
    small.cells[0].outputs[0].data["text/plain"] = text
    shown = execute.clean(small).cells[0].outputs[0].data["text/plain"]
    assert shown == "torchtrt_viz/x.py:3, …, ../shared/corpus/a.json"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(path: Path, execute: ModuleType):
    if path.stem in NEED_EXECUTORCH:
        pytest.importorskip("executorch")
    kept = nbformat.read(path, as_version=4)
    ran = execute.clean(execute.execute(nbformat.read(path, as_version=4)))
    assert list(execute.faults(ran)) == []
    assert execute.pictures(ran) == execute.pictures(kept), "run notebooks/execute.py"
