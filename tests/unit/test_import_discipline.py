"""Importing the package is cheap, and loading a file imports nothing that reading does not need.

What an import costs in seconds is measured by `benchmarks/import_time.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from etdump_writer import etdump, profile, run
from rank_traces import simple_events, trace_json

HEAVY = {
    "torch",
    "plotly",
    "IPython",
    "ipywidgets",
    "anywidget",
    "executorch",
    "flatbuffers",
    "dask",
    "distributed",
    "matplotlib",
    "scipy",
}
ROOMS = ("analysis", "capture", "errors", "schema", "serving", "widgets")

# One interpreter for all questions, the lightest step first: what a step may not import, no step before it
# has imported. Each room is looked at in a child of its own, forked after the bare import alone.
STEPS = f"""
import json, os, sys
import torchtrt_viz as tv

def imported():
    return sorted(sys.modules)

def room(name):
    reader, writer = os.pipe()
    if os.fork() == 0:
        found = getattr(tv, name)
        assert found.__name__ == f"torchtrt_viz.{{name}}" and found.__doc__ and dir(found)
        os.write(writer, json.dumps(imported()).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        return json.loads(answer.read() or "null")

steps = {{"bare": imported(), "dir": [dir(tv), tv.__all__]}}
steps["rooms"] = {{name: room(name) for name in {ROOMS}}}
from torchtrt_viz.analysis.catalogue import TABLES
tv.schema.table("operators"), tv.schema.SPANS
steps["frames"] = imported()
assert len(tv.load(sys.argv[1]).spans)
steps["kineto"] = imported()
assert len(tv.load(sys.argv[2]).spans)
steps["etdump"] = imported()
import torchtrt_viz.analysis.runs.comparison
steps["comparison"] = imported()
print(json.dumps(steps))
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("files")
    kineto, dump = folder / "trace.json", folder / "run.etdp"
    kineto.write_bytes(trace_json(simple_events()))
    dump.write_bytes(etdump([run([profile("Method::execute", 100, 900)])]))
    command = [sys.executable, "-c", STEPS, str(kineto), str(dump)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def packages(modules: list[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def test_import_loads_nothing_heavy(steps: dict):
    assert packages(steps["bare"]).isdisjoint(HEAVY | {"pandas", "numpy"})


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_is_there_after_a_bare_import_and_stays_lazy(name: str, steps: dict):
    found = steps["rooms"][name]
    assert f"torchtrt_viz.{name}" in found
    assert packages(found).isdisjoint(HEAVY | {"pandas", "numpy", "starlette", "uvicorn"})


def test_dir_shows_public_names_only(steps: dict):
    shown, listed = steps["dir"]
    assert shown == sorted(listed)
    assert [name for name in shown if name.startswith("_")] == ["__version__"]
    assert {"Trace", "Session", "load", "profile", "schema", "analysis", "widgets", "errors"} <= set(shown)


def test_documenting_frames_imports_no_pandas(steps: dict):
    assert packages(steps["frames"]).isdisjoint(HEAVY | {"pandas", "numpy"})


@pytest.mark.parametrize("name", ["kineto", "etdump"])
def test_loading_imports_nothing_heavy(name: str, steps: dict):
    assert "pandas" in steps[name]
    assert packages(steps[name]).isdisjoint(HEAVY)


def test_a_usual_file_is_told_without_importing_other_formats(steps: dict):
    others = {"torchtrt_viz.formats.etdump.reader", "torchtrt_viz.formats.engine.torchtrt"}
    assert others.isdisjoint(steps["kineto"])
    assert "torchtrt_viz.formats.etdump.reader" in steps["etdump"]


def test_scipy_is_imported_when_a_test_needs_it(steps: dict):
    assert "torchtrt_viz.analysis.runs.comparison" in steps["comparison"]
    assert "scipy" not in packages(steps["comparison"])


def test_every_public_name_exists_and_is_documented():
    import torchtrt_viz

    for name in torchtrt_viz.__all__:
        if name == "__version__":
            continue
        assert getattr(torchtrt_viz, name).__doc__, name
    assert set(torchtrt_viz.__all__) <= set(dir(torchtrt_viz))
    with pytest.raises(AttributeError, match="no_such_name"):
        torchtrt_viz.no_such_name  # noqa: B018
