"""Make the outputs of the notebooks again.

    python notebooks/execute.py [NAME ...]

runs the notebooks, all of them without a name, from top to bottom in new kernels, and writes them back with what
they show: text, tables and pictures that need no kernel. Left out is what only means something while a kernel
lives (the state of widgets), and what tells of the machine. A notebook with an error or a fault is not written.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parent
LARGEST = 1_500_000
"""Bytes of a notebook, at most: code hosting sites show no larger ones."""
_WIDGET = "application/vnd.jupyter.widget-view+json"
_KEPT = re.compile(r"tv-kept-[0-9a-f]{32}")
_PLACE = re.compile(r"""(?<![\w.:/~-])/(?:home|root|tmp|work|builds|Users|private|var/folders)/[^\s"'<>)]*""")
_CLOCK = re.compile(r"\b20\d\d(?:-\d\d-\d\d[ T]\d\d:\d\d|\d{4}-\d{6}\b)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run a notebook in a kernel of its own and return it with all that it said."""
    NotebookClient(
        notebook,
        timeout=400,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    return notebook


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a copy that keeps what can be read without a kernel."""
    copy = nbformat.reads(_without_places(nbformat.writes(notebook)), as_version=4)
    copy.metadata.pop("widgets", None)
    copy.metadata["language_info"] = {"name": "python"}
    for cell in copy.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _stays(output)]
            for output in cell.outputs:
                _name_kept(output, cell.id)
    return copy


def _stays(output: nbformat.NotebookNode) -> bool:
    if output.output_type == "stream":
        return bool(output.name == "stdout")
    data = output.get("data", {})
    if "<progress" in data.get("text/html", ""):  # of a load that took its time on this machine
        return False
    return output.output_type == "error" or (_WIDGET not in data and any(data.values()))


def _name_kept(output: nbformat.NotebookNode, cell: str) -> None:
    """A static form has a new name in each run, by which its widget finds it: here it is the cell's."""
    data = output.get("data", {})
    if "text/html" in data:
        data["text/html"] = _KEPT.sub(f"tv-kept-{cell}", data["text/html"])


def _without_places(text: str) -> str:
    shared = os.environ.get("TORCHTRT_VIZ_SHARED")
    temporary = re.escape(tempfile.gettempdir())
    if shared:
        text = text.replace(shared.rstrip("/"), "../shared")
    checkout = f"{FOLDER.parent}/"
    text = text.replace("../../shared", "../shared").replace(checkout, "")
    for length in range(len(checkout), 3, -1):  # what was cut short within it
        text = text.replace(f"{checkout[:length]}…", "…")
    return re.sub(rf"{temporary}/tmp\w{{8}}\b/?", "", text)


def faults(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Say what a notebook that is kept must not hold, and what it lacks."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        yield "its cells did not all run, once each and in order"
    if "widgets" in notebook.metadata:
        yield "it has the state of widgets"
    outputs = [output for cell in code for output in cell.outputs]
    for output in outputs:
        if output.output_type == "error":
            yield f"it ends in {output.ename}"
        if _WIDGET in output.get("data", {}):
            yield "it has a widget that no kernel will answer for"
    if not pictures(notebook):
        yield "it has no picture"
    if not code or not any(output.get("text", "").strip() for output in code[-1].outputs):
        yield "it does not end in its finding, in words"
    text = nbformat.writes(notebook)
    if len(text.encode()) > LARGEST:
        yield f"it has {len(text.encode()):,} bytes, more than {LARGEST:,}"
    shown = "\n".join(_shown(outputs))
    printed = "\n".join(output.get("data", {}).get("text/plain", "") for output in outputs)
    for pattern, where in ((_PLACE, shown), (_CLOCK, shown), (_ADDRESS, printed)):
        if found := pattern.search(where):
            yield f"it shows {found[0]!r}, which is of one machine"
    for word in (socket.gethostname(), getpass.getuser(), sysconfig.get_path("purelib")):
        if len(word) > 4 and word in shown:
            yield f"it shows {word!r}, which is of this machine"


def _shown(outputs: list[nbformat.NotebookNode]) -> Iterator[str]:
    for output in outputs:
        yield output.get("text", "")
        for kind, value in output.get("data", {}).items():
            if not kind.startswith("image/png"):
                yield value if isinstance(value, str) else json.dumps(value)


def pictures(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the cells that show pictures."""
    return [
        cell.id
        for cell in notebook.cells
        if cell.cell_type == "code"
        and any(kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {}))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a notebook without its ending")
    names = parser.parse_args().names or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    status = 0
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        try:
            notebook = clean(execute(nbformat.read(path, as_version=4)))
            found = list(faults(notebook))
        except CellExecutionError as error:
            found = [f"a cell failed: {error.ename}: {error.evalue}"]
        for fault in found:
            print(f"{name}: {fault}", file=sys.stderr)
        if found:
            status = 1
            continue
        path.write_text(nbformat.writes(notebook) + "\n")
        print(f"{name}: {path.stat().st_size:,} bytes")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
