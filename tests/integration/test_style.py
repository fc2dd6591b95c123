"""The checkers that the project keeps to: lint, format, types, C++ format."""

from __future__ import annotations

import subprocess
from pathlib import Path

from native_build import tool


def _check(root: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def test_lint(root: Path):
    _check(root, tool("ruff"), "check", "--no-cache", ".")


def test_format(root: Path):
    _check(root, tool("ruff"), "format", "--no-cache", "--check", ".")


def test_types(root: Path, tmp_path: Path):
    _check(root, tool("mypy"), "--cache-dir", str(tmp_path))


def test_cpp_format(root: Path):
    sources = sorted(
        str(path) for path in (root / "capture_ext").rglob("*") if path.suffix in (".cpp", ".hpp", ".h")
    )
    assert sources
    _check(root, tool("clang-format"), "--dry-run", "--Werror", *sources)
