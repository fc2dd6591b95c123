"""Importing the package is cheap, and loading a file imports nothing that reading does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "torch",
    "plotly",
    "IPython",
    "ipywidgets",
    "anywidget",
    "executorch",
    "dask",
    "distributed",
    "matplotlib",
    "scipy",
)


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy():
    code = "import sys, json, torchtrt_viz; print(json.dumps(sorted(sys.modules)))"
    loaded = {name.split(".")[0] for name in json.loads(_run(code))}
    assert loaded.isdisjoint((*HEAVY, "pandas", "numpy"))


@pytest.mark.parametrize("name", ["analysis", "capture", "errors", "schema", "serving", "widgets"])
def test_a_room_is_there_after_a_bare_import_and_stays_lazy(name: str):
    code = (
        f"import sys, json, torchtrt_viz as tv; room = tv.{name};"
        f"assert room.__name__ == 'torchtrt_viz.{name}';"
        "assert room.__doc__; dir(room); print(json.dumps(sorted(sys.modules)))"
    )
    loaded = {module.split(".")[0] for module in json.loads(_run(code))}
    assert loaded.isdisjoint((*HEAVY, "pandas", "numpy", "starlette", "uvicorn"))


def test_dir_shows_public_names_only():
    code = "import json, torchtrt_viz as tv; print(json.dumps([dir(tv), tv.__all__]))"
    shown, listed = json.loads(_run(code))
    assert shown == sorted(listed)
    assert [name for name in shown if name.startswith("_")] == ["__version__"]
    assert {"Trace", "Session", "load", "profile", "schema", "analysis", "widgets", "errors"} <= set(shown)


def test_import_takes_less_than_a_tenth_of_a_cpu_second():
    code = "import time; a = time.process_time(); import torchtrt_viz; print(time.process_time() - a)"
    assert min(float(_run(code)) for _ in range(3)) < 0.1


@pytest.mark.parametrize("name", ["kineto", "etdump"])
def test_loading_imports_nothing_heavy(name: str, corpus: Path):
    path = {
        "kineto": corpus / "kineto" / "a100_triton_cuda_driver.json.gz",
        "etdump": corpus / "etdump" / "mv2q_xnnpack.etdp",
    }[name]
    code = (
        f"import sys, json, torchtrt_viz as tv; t = tv.load({str(path)!r}); assert len(t.spans) > 0;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = {module.split(".")[0] for module in json.loads(_run(code))}
    assert loaded.isdisjoint(HEAVY)


def test_every_public_name_exists_and_is_documented():
    import torchtrt_viz

    for name in torchtrt_viz.__all__:
        if name == "__version__":
            continue
        assert getattr(torchtrt_viz, name).__doc__, name
    assert set(torchtrt_viz.__all__) <= set(dir(torchtrt_viz))
    with pytest.raises(AttributeError, match="no_such_name"):
        torchtrt_viz.no_such_name  # noqa: B018
