"""A real ipykernel, driven as a notebook drives it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("nbclient") is None or find_spec("ipykernel") is None:
    collect_ignore_glob = ["test_*.py"]


@dataclass
class Cell:
    """What running a cell gave."""

    status: str
    ename: str = ""
    evalue: str = ""
    outputs: list[Any] = field(default_factory=list)

    def stream(self, name: str = "stdout") -> str:
        return "".join(o["text"] for o in self.outputs if o["output_type"] == "stream" and o["name"] == name)

    @property
    def errors(self) -> list[Any]:
        return [o for o in self.outputs if o["output_type"] == "error"]

    @property
    def result(self) -> str | None:
        """The text of Out, None without."""
        found = [o["data"]["text/plain"] for o in self.outputs if o["output_type"] == "execute_result"]
        return found[0] if found else None

    @property
    def displays(self) -> list[dict[str, str]]:
        return [o["data"] for o in self.outputs if o["output_type"] == "display_data"]

    @property
    def reports(self) -> list[dict[str, str]]:
        """The bundles that the magic displayed."""
        return [data for data in self.displays if data.get("text/plain", "").startswith("trtprofile:")]

    @property
    def kinds(self) -> list[str]:
        """Kinds of output in their order; the magic's own bundles are "report"."""
        out = []
        for o in self.outputs:
            report = o["output_type"] == "display_data" and o["data"].get("text/plain", "").startswith(
                "trtprofile:"
            )
            out.append("report" if report else o["output_type"])
        return out


class Notebook:
    """A kernel in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        import nbformat
        from nbclient import NotebookClient

        self.folder = folder
        self._format = nbformat.v4
        self._book = nbformat.v4.new_notebook()
        self._client = NotebookClient(
            self._book, kernel_name="python3", timeout=120, resources={"metadata": {"path": str(folder)}}
        )
        # no profile of the person who runs the tests
        environment = {**os.environ, "IPYTHONDIR": str(folder / ".ipython")}
        self._context = self._client.setup_kernel(env=environment)

    def __enter__(self) -> Notebook:
        self._context.__enter__()
        self.pid = int(self.run("import os; print(os.getpid())").stream())
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(*exc)

    def run(self, code: str) -> Cell:
        """Run a cell as a notebook does."""
        from nbclient.exceptions import CellExecutionError

        cell = self._format.new_code_cell(code)
        self._book.cells.append(cell)
        try:
            self._client.execute_cell(cell, len(self._book.cells) - 1)
        except CellExecutionError as error:
            return Cell("error", error.ename, error.evalue, list(cell.outputs))
        return Cell("ok", outputs=list(cell.outputs))

    def run_and_interrupt(self, code: str, seconds: float) -> Cell:
        """Run a cell and press Ctrl-C after a while."""
        timer = threading.Timer(seconds, os.kill, (self.pid, signal.SIGINT))
        timer.start()
        try:
            return self.run(code)
        finally:
            timer.cancel()

    def value(self, expression: str) -> str:
        """Return the repr of an expression, without leaving a trace in the namespace."""
        cell = self.run(f"print(repr({expression}))")
        assert cell.status == "ok", cell
        return cell.stream().strip()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A kernel with the extension loaded; every test of a module shares it."""
    with Notebook(tmp_path_factory.mktemp("notebook")) as notebook:
        loaded = notebook.run("%load_ext torchtrt_viz")
        assert loaded.status == "ok"
        assert loaded.outputs == []
        yield notebook


@pytest.fixture
def notebook(kernel: Notebook) -> Iterator[Notebook]:
    """The kernel; afterwards no capture is running and none waits to be shown."""
    yield kernel
    left = (
        "(lambda r, s: (r.running(), s._active, s._values, s._waiting))("
        "__import__('torchtrt_viz.capture.registry', fromlist=['x']), "
        "__import__('torchtrt_viz.magic.cell_capture', fromlist=['x']))"
    )
    assert kernel.value(left) == "(None, [], [], [])"
