"""The native runner: no LibTorch in it, the same results and the same events as from Python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import torchtrt_viz
import torchtrt_viz._native as package


@pytest.fixture(scope="module")
def runner(capture_module):
    path = Path(next(iter(package.__path__))) / "bin" / "trt_runner"
    if not path.is_file():
        pytest.skip("trt_runner is not built")
    return str(path)


def _run(*command, code=0):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_the_native_reference_runner_links_eventtracer_and_etdump_without_libtorch(runner):
    libraries = _run("ldd", runner).stdout
    assert "libexecutorch.so" in libraries
    assert "not found" not in libraries
    for forbidden in ("libtorch.so", "libtorch_cpu", "libtorch_python", "libc10", "libpython"):
        assert forbidden not in libraries


def test_results_and_events_are_those_of_python(runner, demo, tmp_path):
    x = demo.inputs[0].numpy()
    np.save(tmp_path / "x.npy", x)
    etdump = tmp_path / "run.etdp"
    done = _run(
        runner,
        str(demo.path),
        *("--level", "layers", "--runs", "3", "--warmup", "2"),
        *("--input", str(tmp_path / "x.npy"), "--output-dir", str(tmp_path / "out")),
        *("--etdump", str(etdump), "--format", "trex", "--path-prefix", str(tmp_path / "trex")),
    )
    assert "3 runs of 'forward', 0 failed" in done.stdout
    for i, expected in enumerate(demo.expected):
        found = np.load(tmp_path / "out" / f"output_{i}.npy")
        assert found.dtype == expected.numpy().dtype
        assert np.allclose(found, expected.numpy(), atol=1e-4)
    beside = json.loads(Path(f"{etdump}.json").read_text())
    assert [block["name"] for block in beside["blocks"]].count("Execute") == 3
    assert {block["method"] for block in beside["blocks"]} == {"forward"}
    assert beside["engines"][0]["calls"] == 5
    trace = torchtrt_viz.load(etdump)
    names = trace.spans["name"].astype(str)
    assert (names == "torchtrt.delegate").sum() == 3 * len(beside["engines"])
    assert trace.meta["base_ns"] is not None
    profiles = list((tmp_path / "trex").glob("*.profile.json"))
    assert len(profiles) == len(beside["engines"])
    for profile in profiles:
        assert json.loads(profile.read_text())[0]["count"] == 5


def test_inputs_are_made_up_where_none_are_given(runner, demo):
    assert "1 runs" in _run(runner, str(demo.path)).stdout
    listing = _run(runner, str(demo.path), "--list").stdout
    assert "forward" in listing
    assert "float32 (1, 3, 64, 64)" in listing
    assert "delegate: TensorRTBackend" in listing


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere.pte"], 3, "cannot read nowhere.pte"),
        (["{pte}", "--level", "all"], 3, "choose off, delegate, phases or layers"),
        (["{pte}", "--option", "TensorRTBackend:torchtrt_profile_level=3"], 3, "give a string"),
        (["{pte}", "--option", "nonsense"], 2, "BACKEND:KEY=VALUE"),
        (["{pte}", "--runs", "many"], 2, "takes a number"),
        (["{pte}", "--runs"], 2, "--runs needs a value"),
        (["{pte}", "--frobnicate", "1"], 2, "no option --frobnicate"),
        (["{pte}", "--method", "backward"], 3, "no method 'backward', only forward"),
        (["{pte}", "--input", "{text}"], 2, "not a .npy file"),
        (["{pte}", "--input", "{wrong}"], 1, "float64, expected float32"),
        (["{text}"], 3, "not an ExecuTorch program"),
        (["{pte}", "--library", "nowhere.so"], 3, "cannot load library nowhere.so"),
        ([], 2, "which program?"),
    ],
)
def test_what_is_wrong_is_said(runner, demo, tmp_path, arguments, code, said):
    (tmp_path / "text").write_text("just a text, and none of the formats that are wanted")
    np.save(tmp_path / "wrong.npy", np.ones((1, 3, 64, 64)))
    places = {"pte": demo.path, "text": tmp_path / "text", "wrong": tmp_path / "wrong.npy"}
    done = _run(runner, *(argument.format(**places) for argument in arguments), code=code)
    assert said in done.stderr


def test_help_and_version(runner):
    assert "--level LEVEL" in _run(runner, "--help").stdout
    assert "delegate: registered" in _run(runner, "--version").stdout
