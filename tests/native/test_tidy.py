"""What shows in the C++ code without a build: findings of clang-tidy, headers that do not stand alone."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from native_build import configure, tool

pytestmark = [pytest.mark.native, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def commands(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """One compile command of every source but the tests' own."""
    folder = tmp_path_factory.mktemp("commands")
    capture = find_spec("executorch") is not None
    options = ("-DTORCHTRT_VIZ_PYTHON=ON", f"-DTORCHTRT_VIZ_CAPTURE={'ON' if capture else 'OFF'}")
    configure(root, folder, *options)
    top = root / "capture_ext"
    found: dict[Path, dict[str, Any]] = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.is_relative_to(top) and not path.is_relative_to(top / "tests"):
            found.setdefault(path, entry)
    missing = {path for path in top.rglob("*.cpp") if not path.is_relative_to(top / "tests")} - found.keys()
    assert not (capture and missing), missing
    return list(found.values())


def failures_of(checks: list[list[str]]) -> str:
    """Run commands two at a time; return what those printed that failed."""

    def run(command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        return "\n".join(filter(None, pool.map(run, checks)))


def test_clang_tidy_finds_nothing(commands: list[dict[str, Any]], root: Path, tmp_path: Path) -> None:
    # nanobind's name of its package, of which its headers make a string: no macro of ours
    theirs = re.compile(r"-DNB_BACKEND_PYPI=\S+")
    ours = [{**entry, "command": theirs.sub("", entry["command"])} for entry in commands]
    (tmp_path / "compile_commands.json").write_text(json.dumps(ours))
    always = [tool("clang-tidy"), "--quiet", f"--config-file={root / '.clang-tidy'}", "-p", str(tmp_path)]
    found = failures_of([[*always, entry["file"]] for entry in commands])
    assert not found, found[-8000:]


def test_headers_stand_alone(commands: list[dict[str, Any]], root: Path) -> None:
    top = root / "capture_ext"
    sources = {Path(entry["file"]): entry["command"] for entry in commands}
    checks = []
    for header in sorted(top.rglob("*.hpp")):
        name = header.relative_to(top)
        users = [source for source in sources if f'#include "{name}"' in source.read_text()]
        beside = [source for source in users if source.parent == header.parent] or users
        if not beside:  # of the tests, or of a room that is not built here
            continue
        words = shlex.split(sources[beside[0]])
        flags = [word for word in words[1:] if word.startswith(("-I", "-D", "-std"))]
        places = [at for at, word in enumerate(words) if word == "-isystem"]
        system = [word for at in places for word in words[at : at + 2]]
        alone = ["-fsyntax-only", "-include", str(header), "-x", "c++", "/dev/null"]
        checks.append([words[0], *flags, *system, *alone])
    assert len(checks) > 40
    found = failures_of(checks)
    assert not found, found[-8000:]
