"""The demo: one program with every sort of region, checked, captured and written."""

from __future__ import annotations

import pytest

import torchtrt_viz as tv
from tests.support import etdump_raw
from torchtrt_viz.errors import CaptureError, OptionError

torch = pytest.importorskip("torch", reason="needs torch")


@pytest.fixture(scope="module")
def result(capture_module, tmp_path_factory):
    from torchtrt_viz.examples.demo import run_demo

    return run_demo(tmp_path_factory.mktemp("run_demo") / "out", runs=3)


def test_outputs_equal_eager(result):
    assert 0 <= result.max_error <= 1e-4


def test_every_sort_of_region_is_in_one_program_and_one_dump(result):
    backends = [region.backend for region in result.exported.regions]
    assert backends.count("TensorRTBackend") == 2
    assert backends.count("XnnpackBackend") == 2
    assert backends[-1] == "portable"
    blocks = etdump_raw.blocks(result.files["etdump"].read_bytes())
    executed = [block for block in blocks if any(e.name == "Method::execute" for e in block)]
    assert len(executed) == 3
    for block in executed:
        names = [str(e.name) for e in block]
        assert names.count("torchtrt.delegate") == 2
        assert names.count("DELEGATE_CALL") == 4
        assert "native_call_topk.values" in names
        assert any(name.startswith("Fully Connected") for name in names)


def test_the_trace_joins_torch_and_the_program(result):
    trace = result.trace
    assert trace.meta["warnings"] == []
    assert (trace.spans["kind"] == "method").sum() == 3
    assert (trace.spans["name"] == "demo.forward").sum() == 3
    assert len(trace.questions()) == 6
    assert set(trace.questions()["measured"]) <= {"yes", "partly"}


def test_the_files_are_there_and_load(result):
    assert set(result.files) == {"program", "etrecord", "capture", "etdump", "torch"}
    assert all(path.is_file() for path in result.files.values())
    loaded = tv.load(result.files["capture"].parent)
    assert len(loaded.spans) == len(result.trace.spans)
    assert len(tv.load(result.files["etdump"], etrecord=result.files["etrecord"]).spans) > 100


def test_outputs_that_differ_are_an_error():
    from torchtrt_viz.examples.demo import _compare

    right = (torch.zeros(2), torch.ones(2, dtype=torch.int64))
    assert _compare(right, right) == 0
    for wrong in ([0.0, 2e-4], [0.0, float("nan")], [float("nan"), 2e-4], [float("inf"), 0.0]):
        with pytest.raises(CaptureError, match="differ"):
            _compare((torch.tensor(wrong), right[1]), right)
    with pytest.raises(CaptureError, match="shapes"):
        _compare((torch.zeros(3), right[1]), right)


@pytest.mark.parametrize("runs", [0, -1, True, 2.0])
def test_wrong_numbers_of_runs(tmp_path, runs):
    from torchtrt_viz.examples.demo import run_demo

    with pytest.raises(OptionError, match="runs"):
        run_demo(tmp_path, runs=runs)
