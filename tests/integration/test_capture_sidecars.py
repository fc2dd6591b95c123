"""Files beside the ETDump: Perfetto and TREX, from a real program, never one file for two engines."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

RUN = """
import sys, numpy
from torchtrt_viz._native import native
session = native("capture").Session(sys.argv[1], {"TensorRTBackend": {
    "torchtrt_profile_level": "layers", "torchtrt_profile_format": sys.argv[2],
    "torchtrt_profile_path_prefix": sys.argv[3]}})
meta = session.method_meta("forward")["inputs"][0]
for _ in range(3):
    session.run("forward", [numpy.ones(meta["sizes"], meta["dtype"])])
"""


def _session(capture_module, demo, **options):
    prefixed = {f"torchtrt_profile_{key}": str(value) for key, value in options.items()}
    return capture_module.Session(str(demo.path), {"TensorRTBackend": prefixed})


def _inputs(demo):
    return [x.numpy() for x in demo.inputs]


def _strict(path):
    """Read JSON as the standard has it: no NaN, no Infinity."""
    return json.loads(
        path.read_text(), parse_constant=lambda text: pytest.fail(f"{text} is not JSON ({path.name})")
    )


def test_trex_profiles_add_up(capture_module, demo, tmp_path):
    with _session(capture_module, demo, level="layers", format="trex", path_prefix=tmp_path) as session:
        for _ in range(4):
            session.run("forward", _inputs(demo))
        engines = session.engines()
    profiles = sorted(tmp_path.glob("*.profile.json"))
    graphs = sorted(tmp_path.glob("*.graph.json"))
    assert len(profiles) == len(graphs) == len(engines)
    for profile, graph in zip(profiles, graphs, strict=True):
        header, *rows = _strict(profile)
        assert header == {"count": 4, "engine_runtime": "host"}
        assert sum(row["percentage"] for row in rows) == pytest.approx(100, abs=1e-9)
        assert len({row["name"] for row in rows}) == len(rows)
        for row in rows:
            assert row["averageMs"] == pytest.approx(row["timeMs"] / 4)
            assert 0 <= row["medianMs"] <= row["timeMs"]
        layers = _strict(graph)
        assert layers["engine_runtime"] == "host"
        assert len(layers["Layers"]) == len(rows)


def test_perfetto_files_hold_every_call_with_real_times(capture_module, demo, tmp_path):
    with _session(capture_module, demo, level="layers", format="perfetto", path_prefix=tmp_path) as session:
        for _ in range(3):
            session.run("forward", _inputs(demo))
    files = sorted(tmp_path.glob("*.perfetto.json"))
    assert files
    for file in files:
        trace = _strict(file)
        other = trace["otherData"]
        assert other["engine_runtime"] == "host"
        assert other["calls"] == 3
        assert other["dropped_spans"] == 0
        slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        enqueue = {e["args"]["call"]: e for e in slices if e["name"] == "torchtrt.enqueue_host"}
        whole = {e["args"]["call"]: e for e in slices if e["name"] == "torchtrt.delegate"}
        assert sorted(enqueue) == sorted(whole) == [0, 1, 2]
        for event in slices:
            call = whole[event["args"]["call"]]
            assert call["ts"] <= event["ts"] + 1e-9
            assert event["ts"] + event["dur"] <= call["ts"] + call["dur"] + 1e-3
        for call, event in enqueue.items():
            inside = [e["dur"] for e in slices if e["cat"] == "layer" and e["args"]["call"] == call]
            assert 0 < sum(inside) <= event["dur"] + 1e-3


def test_processes_and_programs_never_share_a_file(capture_module, demo, tmp_path):
    environment = {**os.environ, "RANK": "5"}
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-c", RUN, str(demo.path), "trex", str(tmp_path)], check=True, env=environment
        )
    files = sorted(tmp_path.glob("*.profile.json"))
    with _session(capture_module, demo, level="delegate") as session:
        engines = len(session.engines())
    assert len(files) == 2 * engines
    assert all("-rank5-" in file.name for file in files)
    for file in files:
        assert _strict(file)[0]["count"] == 3


def test_engine_ids_are_the_same_in_every_process(capture_module, demo, tmp_path):
    subprocess.run([sys.executable, "-c", RUN, str(demo.path), "perfetto", str(tmp_path)], check=True)
    elsewhere = {_strict(file)["otherData"]["engine_id"] for file in tmp_path.glob("*.perfetto.json")}
    with _session(capture_module, demo, level="delegate") as session:
        here = {engine["engine_id"] for engine in session.engines()}
    assert here == elsewhere


def test_a_prefix_that_cannot_be_written_fails_the_load(capture_module, demo, tmp_path):
    from torchtrt_viz.errors import CaptureError

    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(CaptureError, match="file/below"):
        _session(capture_module, demo, level="layers", format="trex", path_prefix=blocked / "below")


def test_etdump_format_and_level_off_write_nothing(capture_module, demo, tmp_path):
    for options in ({"level": "layers", "format": "etdump"}, {"level": "off", "format": "trex"}):
        with _session(capture_module, demo, path_prefix=tmp_path, **options) as session:
            session.run("forward", _inputs(demo))
    assert list(tmp_path.iterdir()) == []


def test_a_recording_has_what_the_sidecars_have(capture_module, demo, tmp_path):
    recording = capture_module.Recording()
    with _session(capture_module, demo, level="layers", format="trex", path_prefix=tmp_path) as session:
        session.run("forward", _inputs(demo))
        columns = recording.stop()
    durations = columns["end_ns"] - columns["start_ns"]
    assert (durations >= 0).all()
    assert columns["dropped"] == 0
    layers = columns["kind"] == columns["kinds"].index("layer")
    by_engine = {
        engine["engine_id"]: int(durations[layers & (columns["engine"] == row)].sum())
        for row, engine in enumerate(columns["engines"])
    }
    written = {}
    for file in tmp_path.glob("*.profile.json"):
        total = sum(round(row["timeMs"] * 1e6) for row in _strict(file)[1:])
        written[next(id_ for id_ in by_engine if id_ in file.name)] = total
    assert by_engine == written
    assert set(np.unique(columns["thread"])) == {__import__("threading").get_native_id()}
