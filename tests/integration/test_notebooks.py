"""Every notebook runs from top to bottom in a clean kernel, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
NEED_EXECUTORCH = {"quickstart", "executorch_delegates", "opaque_pt2", "compare_runs"}


def test_there_are_notebooks():
    assert {"quickstart", "executorch_delegates", "compare_runs"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_without_outputs(path: Path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(path: Path):
    notebook = nbformat.read(path, as_version=4)
    if path.stem in NEED_EXECUTORCH:
        pytest.importorskip("executorch")
    client = NotebookClient(
        notebook, timeout=400, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    last = notebook.cells[-1]
    text = "".join(output.get("text", "") for output in last.outputs)
    assert text.strip(), "a notebook ends in a finding"
