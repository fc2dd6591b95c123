"""The C++ code without the runtimes on aarch64: cross-compiled, its tests run in emulation."""

from __future__ import annotations

import re
import shutil
import struct
import sys
from pathlib import Path

import pytest
from native_build import build, run, tool

pytestmark = [pytest.mark.native, pytest.mark.slow, pytest.mark.timeout(3600)]

AARCH64 = 183  # e_machine of ELF

TESTS = (
    *("core_tests", "blob_tests", "columns_tests", "race_tests", "tensorrt_tests"),
    *("read_engine", "read_etdump", "read_kineto"),
)


@pytest.fixture(scope="module")
def folder(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of everything that needs neither Python nor the runtimes."""
    for program, package in (
        ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
        ("qemu-aarch64", "qemu-user"),
    ):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (apt-get install {package})")
    made = tmp_path_factory.mktemp("aarch64")
    toolchain = root / "capture_ext/cmake/aarch64.cmake"
    options = (
        f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
        "-DTORCHTRT_VIZ_CAPTURE=OFF",
        "-DTORCHTRT_VIZ_UNITY=ON",
    )
    build(root, made, ("all",), *options)
    return made


def test_the_native_tests_pass(folder: Path) -> None:
    header = (folder / "tests/core_tests").read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", header, 18) == (AARCH64,)
    output = run([tool("ctest"), "--output-on-failure"], folder)
    assert "100% tests passed" in output
    assert set(re.findall(r"(\w+) \.+ +Passed", output)) == set(TESTS)


def test_the_perfetto_reader_reads_every_construct(folder: Path, root: Path, tmp_path: Path) -> None:
    run([sys.executable, str(root / "tests/fuzz/perfetto_seeds.py"), str(tmp_path)], tmp_path)
    seeds = sorted(map(str, tmp_path.iterdir()))
    assert len(seeds) > 10
    emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
    output = run([*emulator, str(folder / "tests/read_perfetto"), "", *seeds], tmp_path)
    assert output == f"{len(seeds)} files\n"
