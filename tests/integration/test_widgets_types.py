"""The front end's modules have the types that they say they have, by TypeScript's own compiler.

Users need none of this: the modules are loaded as they are. The compiler is kept outside of the tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from torchtrt_viz.scene import assets

TYPESCRIPT = "5.9.3"


def typescript() -> Path:
    """Return the folder of the compiler, which is fetched once."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: the types of the front end are not checked")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torchtrt_viz-tests"
    kept = cache / f"typescript-{TYPESCRIPT}"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            install = [
                "npm",
                "install",
                "--no-save",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
                folder,
            ]
            done = subprocess.run([*install, f"typescript@{TYPESCRIPT}"], capture_output=True, text=True)
            assert done.returncode == 0, f"npm could not install TypeScript:\n{done.stderr}"
            fetched = Path(folder) / "node_modules" / "typescript"
            try:
                fetched.rename(kept)
            except OSError:
                assert kept.exists(), "another run of the tests came first"
    return kept


@pytest.fixture(scope="module")
def check():
    compiler = typescript() / "bin" / "tsc"

    def run(folder):
        command = ["node", compiler, "--pretty", "false", "-p", folder]
        return subprocess.run(command, capture_output=True, text=True)

    return run


def test_every_module_asks_to_be_checked():
    for file in assets.STATIC.glob("*.js"):
        assert file.read_text(encoding="utf-8").startswith("// @ts-check\n"), file.name
    for file in assets.STATIC.glob("*.js"):
        assert "@ts-ignore" not in file.read_text(encoding="utf-8"), file.name
        assert "@ts-nocheck" not in file.read_text(encoding="utf-8"), file.name


def test_the_types_are_right(check):
    done = check(assets.STATIC)
    assert done.returncode == 0, done.stdout


def test_wrong_names_and_types_are_found(check, tmp_path):
    """Columns are known by name on this side too: the schema gives them their types."""
    folder = tmp_path / "static"
    shutil.copytree(assets.STATIC, folder)
    faults = {
        ("kernel.js", "columns.cell_busy", "columns.column_busy"): "Property 'column_busy' does not exist",
        ("schema.js", 'host_busy: "float32"', 'host_busy: "float64"'): "is not assignable to type",
        ("cursor.js", "rows.laneRows", "rows.lanerows"): "Property 'lanerows' does not exist",
    }
    for file, right, wrong in faults:
        text = (folder / file).read_text(encoding="utf-8")
        assert right in text
        (folder / file).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    done = check(folder)
    assert done.returncode != 0
    for said in faults.values():
        assert said in done.stdout
