"""Importing the package is cheap, and loading a file imports nothing that reading does not need.

What an import costs in seconds is measured by `benchmarks/startup.py`.
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
PROFILE = b'[{"count": 10}, {"name": "conv", "timeMs": 5.0, "averageMs": 0.5, "percentage": 100.0}]'
ROOMS = ("analysis", "capture", "errors", "schema", "serving", "widgets")

# Commands whose help is looked at; one of each kind of import.
COMMANDS = ("", "show", "export", "report", "compare", "run", "doctor", "demo", "serve-demo", "mcp")

# One interpreter for all questions, the lightest step first: what a step may not import, no step before it
# has imported. Rooms, helps and files are looked at in children, each forked after the bare import alone.
STEPS = f"""
import json, os, sys
import torchtrt_viz as tv

def imported():
    return sorted(sys.modules)

def after(action, *arguments):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            action(*arguments)
            os.write(writer, json.dumps(imported()).encode())
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        return json.loads(answer.read() or "null")

def room(name):
    found = getattr(tv, name)
    assert found.__name__ == f"torchtrt_viz.{{name}}" and found.__doc__ and dir(found)

def help(command):
    from torchtrt_viz.cli import main
    sys.stdout = open(os.devnull, "w")
    try:
        main([command, "--help"] if command else ["--help"])
    except SystemExit as ended:
        assert not ended.code

def load(path):
    assert len(tv.load(path).spans)

steps = {{"bare": imported(), "dir": [dir(tv), tv.__all__]}}
steps["rooms"] = {{name: after(room, name) for name in {ROOMS}}}
steps["helps"] = {{name: after(help, name) for name in {COMMANDS}}}
steps["files"] = {{name: after(load, path) for name, path in json.loads(sys.argv[1]).items()}}
from torchtrt_viz.analysis.catalogue import TABLES
tv.schema.table("operators"), tv.schema.SPANS
steps["frames"] = imported()
import torchtrt_viz.analysis.runs.comparison
steps["comparison"] = imported()
print(json.dumps(steps))
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("files")
    contents = {
        "kineto": ("trace.json", trace_json(simple_events())),
        "etdump": ("run.etdp", etdump([run([profile("Method::execute", 100, 900)])])),
        "trex": ("engine.profile.json", PROFILE),
    }
    for name, content in contents.values():
        (folder / name).write_bytes(content)
    paths = json.dumps({kind: str(folder / name) for kind, (name, _) in contents.items()})
    done = subprocess.run([sys.executable, "-c", STEPS, paths], capture_output=True, text=True)
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


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_no_numbers(command: str, steps: dict):
    found = steps["helps"][command]
    assert "torchtrt_viz.cli" in found
    assert packages(found).isdisjoint(HEAVY | {"pandas", "numpy", "pyarrow"})


def test_the_help_of_the_command_line_imports_no_command(steps: dict):
    ours = {name for name in steps["helps"][""] if name.startswith("torchtrt_viz")}
    assert ours == {
        "torchtrt_viz",
        *(f"torchtrt_viz.{name}" for name in ("cli", "cli.json_mode", "cli.streams", "errors")),
    }
    assert "rich" not in packages(steps["helps"][""])


@pytest.mark.parametrize("name", ["kineto", "etdump", "trex"])
def test_loading_imports_nothing_heavy(name: str, steps: dict):
    found = steps["files"][name]
    assert "pandas" in found
    assert packages(found).isdisjoint(HEAVY | {"click", "rich", "openpyxl", "fsspec"})
    # the parts of pyarrow that pandas itself leaves alone
    assert {"pyarrow.parquet", "pyarrow.dataset", "pyarrow.fs", "pyarrow.csv"}.isdisjoint(found)


@pytest.mark.parametrize("name", ["kineto", "etdump", "trex"])
def test_loading_imports_no_view_and_no_analysis(name: str, steps: dict):
    """The columns of tables are named in docstrings; what computes them is imported when it is called."""
    rooms = {tuple(module.split(".")[1:3]) for module in steps["files"][name] if "torchtrt_viz." in module}
    assert {"scene", "report", "widgets", "capture", "serving", "aot", "cli"}.isdisjoint(
        room[0] for room in rooms
    )
    assert {room[1] for room in rooms if room[0] == "analysis" and len(room) > 1} <= {"columns"}


def test_a_usual_file_is_told_without_importing_other_formats(steps: dict):
    readers = {
        "kineto": "torchtrt_viz.formats.kineto.reader",
        "etdump": "torchtrt_viz.formats.etdump.reader",
        "trex": "torchtrt_viz.formats.engine.trace",
    }
    for name in ("kineto", "etdump"):
        found = steps["files"][name]
        assert {other for other in readers if readers[other] in found} == {name}


def test_scipy_is_imported_when_a_test_needs_it(steps: dict):
    assert "torchtrt_viz.analysis.runs.comparison" in steps["comparison"]
    assert "scipy" not in packages(steps["comparison"])


def test_every_public_name_exists_and_is_documented():
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    import torchtrt_viz

    for name in torchtrt_viz.__all__:
        if name == "__version__":
            continue
        assert getattr(torchtrt_viz, name).__doc__, name
    assert set(torchtrt_viz.__all__) <= set(dir(torchtrt_viz))
    with pytest.raises(AttributeError, match="no_such_name"):
        torchtrt_viz.no_such_name  # noqa: B018
