"""Files beside the ETDump: Perfetto and TREX, from a real program, never one file for two engines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

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


def test_a_sidecar_loads_with_the_kinds_it_was_written_with(capture_module, demo, tmp_path):
    import torchtrt_viz as tv

    folder = tmp_path / "sidecars"
    with _session(capture_module, demo, level="layers", format="perfetto", path_prefix=folder) as session:
        for _ in range(3):
            session.run("forward", _inputs(demo))
        engines = {engine["engine_id"]: engine for engine in session.engines()}
    files = sorted(folder.glob("*.perfetto.json"))
    assert len(files) == len(engines)
    whole = tv.load(folder)
    for trace in [*(tv.load(file, strict=True) for file in files), whole]:
        spans = trace.spans
        raw = [
            event
            for file in (files if trace is whole else [Path(trace.meta["sources"][0])])
            for event in _strict(file)["traceEvents"]
            if event["ph"] == "X"
        ]
        assert trace.meta["warnings"] == []
        assert sorted(zip(spans["name"], spans["kind"], spans["dur_ns"], strict=True)) == sorted(
            (event["name"], event["cat"], round(event["dur"] * 1000)) for event in raw
        )
        assert set(spans["domain"]) == {"host"}
        assert set(spans["run_id"]) <= set(engines)
        # each call holds its six phases, and the wall clock is the machine's
        calls = spans.index[spans["kind"] == "delegate"]
        phases = spans[spans["kind"] == "phase"]
        assert phases["parent"].isin(calls).all()
        assert (phases.groupby("parent").size() == 6).all()
        assert set(spans["iteration"]) == {0, 1, 2}
        begin = int(spans["start_ns"].min()) + trace.meta["base_ns"]
        assert abs(begin - time.time_ns()) < 600e9
        assert len(trace.delegates()) == spans["run_id"].nunique()
        assert set(trace.phases()["phase"]) >= {"torchtrt.enqueue_host", "torchtrt.synchronize"}
    assert set(whole.spans["run_id"]) == set(engines)
    modeled = {
        e["args"]["timing"] != "measured" for file in files for e in _strict(file)["traceEvents"] if "ts" in e
    }
    assert ("modeled" in set(whole.spans["timing"])) == (True in modeled)


def test_files_of_a_packages_engine_load_with_their_kinds(capture_module, demo, tmp_path):
    torch = pytest.importorskip("torch")
    import torchtrt_viz as tv
    from torchtrt_viz.capture import load_torch_ops

    load_torch_ops()
    program = demo.path.read_bytes()
    blob = program[program.index(b"TR01") :]
    inputs = [
        torch.ones([abs(size) for size in binding["shape"]])
        for binding in capture_module.parse_blob(blob)["bindings"]
        if binding["is_input"]
    ]
    capture_module.set_profile(execution=True, level="layers", format="perfetto", path_prefix=str(tmp_path))
    try:
        for _ in range(2):
            torch.ops.torchtrt_viz.execute_engine(
                inputs, torch.frombuffer(bytearray(blob), dtype=torch.uint8), "region"
            )
        torch.ops.torchtrt_viz.release_engines()
    finally:
        capture_module.reset_profile()
    expected = {
        "_engine_execution_profile.trace": {"layer"},
        "_input_profile.trace": {"phase"},
        "_output_profile.trace": {"phase"},
        "_enqueue_profile.trace": {"phase"},
    }
    for suffix, kinds in expected.items():
        (file,) = tmp_path.glob(f"*{suffix}")
        spans = tv.load(file).spans
        assert set(spans["kind"]) == kinds
        assert len(spans) == len(_strict(file))
    assert tv.load(tmp_path).spans["kind"].value_counts()["phase"] == 2 * 6


def test_a_sidecar_of_a_gpu_engine_keeps_host_and_gpu_apart(tmp_path):
    import torchtrt_viz as tv

    def event(name, kind, tid, start, dur, domain, timing):
        return {
            "ph": "X", "name": name, "cat": kind, "pid": 1, "tid": tid, "ts": start, "dur": dur,
            "args": {"call": 0, "timing": timing, "domain": domain},
        }  # fmt: skip

    about = {
        "schema": 1, "engine_id": "00112233445566ff-forward-0", "engine_name": "net",
        "engine_runtime": "tensorrt", "calls": 1, "dropped_spans": 3, "clock": "CLOCK_MONOTONIC",
        "anchor_monotonic_ns": 5_000, "anchor_unix_ns": 1_700_000_000_000_005_000, "rank": 4,
    }  # fmt: skip
    events = [
        event("torchtrt.enqueue_host", "phase", 1, 1.0, 2.0, "host", "measured"),
        event("torchtrt.enqueue_gpu", "phase", 3, 1.5, 700.0, "gpu", "device"),
        event("conv", "layer", 3, 1.5, 600.0, "gpu", "device"),
        event("torchtrt.delegate", "delegate", 1, 0.5, 3.0, "host", "measured"),
    ]
    path = tmp_path / "net.perfetto.json"
    path.write_text(json.dumps({"otherData": about, "traceEvents": events}))
    trace = tv.load(path)
    spans = trace.spans.set_index("name")
    assert spans["kind"].to_dict() == {e["name"]: e["cat"] for e in events}
    assert spans["domain"].to_dict() == {e["name"]: e["args"]["domain"] for e in events}
    assert spans.loc["torchtrt.enqueue_gpu", "dur_ns"] == 700_000
    assert spans.loc["torchtrt.delegate", "self_ns"] == 1_000
    assert trace.meta["base_ns"] == 1_700_000_000_000_000_000
    assert set(spans["rank"]) == {4}
    assert [w.code for w in trace.meta["warnings"]] == ["dropped"]
    delegates = trace.delegates()
    assert delegates["host_total_ns"].tolist() == [3_000]
    assert delegates["gpu_ns"].tolist() == [700_000]
    assert delegates["layers_domain"].tolist() == ["gpu"]
