"""Builds of the C++ code with their own options, and runs of its tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["build", "configure", "ctest", "run", "simdjson_sources", "tool"]


def tool(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (pip install 'torchtrt-viz[test]')")
    return found


def simdjson_sources() -> list[str]:
    """Return a compiler's arguments for simdjson, from where a build of the package takes it."""
    spec = find_spec("simdjson")
    folder = Path(*spec.submodule_search_locations) if spec and spec.submodule_search_locations else None
    if folder is None or not (folder / "simdjson.cpp").exists():
        pytest.skip("pysimdjson, which carries simdjson's source, is not installed")
    return ["-isystem", str(folder), str(folder / "simdjson.cpp")]


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}"
    return done.stdout


def configure(root: Path, folder: Path, *options: str) -> None:
    run(
        [
            tool("cmake"),
            "-S",
            str(root / "capture_ext"),
            "-B",
            str(folder),
            "-G",
            "Ninja",
            f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
            f"-DPython_EXECUTABLE={sys.executable}",
            "-DTORCHTRT_VIZ_TESTS=ON",
            "-DTORCHTRT_VIZ_PYTHON=OFF",
            "-DTORCHTRT_VIZ_WERROR=ON",
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1",
            *options,
        ],
        root,
    )


def build(root: Path, folder: Path, targets: tuple[str, ...], *options: str) -> None:
    configure(root, folder, *options)
    run([tool("cmake"), "--build", str(folder), "-j2", "--target", *targets], root)


def ctest(folder: Path, targets: tuple[str, ...], **environment: str) -> str:
    wanted = "^(" + "|".join(targets) + ")$"
    return run([tool("ctest"), "--output-on-failure", "-R", wanted], folder, **environment)
