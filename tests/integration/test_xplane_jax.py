"""What JAX writes three times is one recording: the XPlane against its own trace-event file.

Runs where JAX is installed (``pip install 'jax[cpu]'``), which no extra brings.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import torchtrt_viz as tv

jax = pytest.importorskip("jax", reason="needs JAX, which no extra brings")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    numpy = jax.numpy

    @jax.jit
    def forward(x: object, weight: object) -> object:
        return numpy.tanh(x @ weight).sum()

    x = numpy.ones((64, 64))
    forward(x, x).block_until_ready()
    out = tmp_path_factory.mktemp("jax")
    with jax.profiler.trace(str(out), create_perfetto_trace=True):
        for step in range(3):
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                forward(x, x).block_until_ready()
    return out


@pytest.mark.slow
def test_both_forms_hold_the_same_events(folder: Path) -> None:
    (plane,) = folder.rglob("*.xplane.pb")
    (events,) = (path for path in folder.rglob("*.trace.json.gz") if "perfetto" not in path.name)
    found = []
    for path in (plane, events):
        trace = tv.load(path)
        assert isinstance(trace, tv.Trace)
        spans = trace.spans
        found.append(Counter(zip(spans["name"].astype(str), spans["start_ns"], spans["dur_ns"], strict=True)))
    assert found[0] == found[1]
    assert sum(found[0].values()) > 50


@pytest.mark.slow
def test_the_folder_is_one_trace(folder: Path) -> None:
    trace = tv.load(folder)
    assert isinstance(trace, tv.Trace)
    assert trace.meta["format"] == "xplane"
    assert [w.code for w in trace.meta["warnings"]].count("same_recording") == 2
    assert trace.spans["iteration"].dropna().unique().tolist() == [0, 1, 2]
    steps = trace.spans[trace.spans["kind"] == "step"]
    assert steps["name"].tolist() == ["train"] * 3
    assert not trace.operators().empty
