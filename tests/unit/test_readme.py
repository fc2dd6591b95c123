"""The README's names exist: every dotted path, import and method in it, each after a bare import alone."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
# what the variables of the README's examples are
OBJECTS = {
    "capture.trace": "Trace",
    "trace": "Trace",
    "session[13]": "Trace",
    "session[1]": "Trace",
    "session": "Session",
    "capture": "Capture",
}

# Resolves names in children, forked after the bare import: no name can lean on another one's. What a class
# has is there as soon as the class is: one child asks for all of it. Libraries are imported once, before.
RESOLVE = """
import json, os, sys
import numpy, pandas, pyarrow
import torchtrt_viz as tv

def resolve(name):
    from functools import reduce
    try:
        reduce(getattr, name.split(".")[1:], tv)
    except tv.errors.MissingDependencyError:
        return 0  # it exists, and said which extra it needs
    except BaseException as error:
        print(f"{name}: {error!r}", file=sys.stderr, flush=True)
        return 1
    return 0

failed = []
for names in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        os._exit(sum(map(resolve, names)))
    if os.waitpid(child, 0)[1]:
        failed.append(names)
print(json.dumps(failed))
"""


def code_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_code_is_python():
    assert len(code_blocks()) >= 5
    for block in code_blocks():
        ast.parse(without_magics(block))


def without_magics(block: str) -> str:
    return "\n".join("" if line.startswith("%") else line for line in block.split("\n"))


def dotted_paths() -> set[str]:
    """Paths below the package, in prose and code: `tv.load`, `torchtrt_viz.examples.serving_pd`."""
    found = re.findall(r"\b(?:tv|torchtrt_viz)((?:\.[A-Za-z_]\w*)+)", README.read_text())
    return {f"torchtrt_viz{path}" for path in found}


def imported_names() -> set[str]:
    trees = [ast.parse(without_magics(block)) for block in code_blocks()]
    return {
        f"{node.module}.{alias.name}"
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torchtrt_viz")
        for alias in node.names
    }


def methods() -> set[str]:
    text = README.read_text()
    return {
        f"torchtrt_viz.{cls}.{method}"
        for variable, cls in OBJECTS.items()
        for method in re.findall(rf"(?<![\w.]){re.escape(variable)}\.(\w+)\(", text)
    }


def asked_together(names: set[str]) -> list[list[str]]:
    """Attributes of one class in one list, every other name in a list of its own."""
    lists: dict[str, list[str]] = {}
    for name in sorted(names):
        owner = name.rpartition(".")[0]
        lists.setdefault(owner if owner.rpartition(".")[2][0].isupper() else name, []).append(name)
    return list(lists.values())


def test_every_name_works_after_a_bare_import():
    names = dotted_paths() | imported_names() | methods()
    assert {
        "torchtrt_viz.load",
        "torchtrt_viz.serving.ProfileConfig",
        "torchtrt_viz.Trace.questions",
        "torchtrt_viz.Session.stragglers",
    } <= names
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE, json.dumps(asked_together(names))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [], done.stderr


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_to_files_lead_somewhere(page: str):
    links = re.findall(r"\]\(([^)#:]+)\)", (README.parent / page).read_text())
    assert [link for link in links if not (README.parent / link).exists()] == []
