"""The sample traces in the repository: whole, small, and readable."""

from __future__ import annotations

import importlib.util
import json
import re

import pytest

import torchtrt_viz as tv


@pytest.fixture(scope="module")
def samples(root):
    return root / "sample_traces"


def test_the_samples_are_those_of_the_manifest(samples):
    spec = importlib.util.spec_from_file_location("make_samples", samples / "make_samples.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.check(samples) == []
    listed = json.loads((samples / "MANIFEST.json").read_text())
    assert listed["engine_runtime"] == "host"
    assert len(listed["files"]) >= 15
    assert all(entry["bytes"] < 300_000 and entry["made_by"] for entry in listed["files"].values())
    readme = (samples / "README.md").read_text()
    assert all(f"`{name.split('/')[0]}" in readme for name in listed["files"])


def test_no_sample_holds_a_path_of_the_machine_that_made_it(samples):
    for path in samples.rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".md", ".pyc"):
            assert not re.search(rb"/(tmp|root|home|work)/", path.read_bytes()), path


def test_the_capture_answers_the_six_questions(samples):
    trace = tv.load(samples / "demo_capture")
    assert trace.meta["warnings"] == []
    assert (trace.spans["kind"] == "method").sum() == 5
    assert (trace.spans["name"] == "demo.forward").sum() == 5
    answers = trace.questions()
    assert len(answers) == 6
    assert set(answers["measured"]) <= {"yes", "partly"}
    assert {"TensorRTBackend", "XnnpackBackend"} <= set(trace.delegates()["backend"])
    row = trace.spans.index[trace.spans["kind"] == "layer"][0]
    assert trace.args[int(row)]["engine_runtime"] == "host"
    assert "demo_net.py" in str(trace.args[int(row)]["source"])


@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [("eager.pt.trace.json", "operator", 100), ("trex", "layer", 30), ("package", "layer", 30)],
)
def test_each_sample_loads(samples, name, kind, least):
    loaded = tv.load(samples / name)
    frames = [loaded.spans] if isinstance(loaded, tv.Trace) else [t.spans for t in loaded.traces()]
    assert sum(int((frame["kind"] == kind).sum()) for frame in frames) >= least
