"""Opaque packages: results, and what their engines record although nothing leads to them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import torchtrt_viz as tv
from torchtrt_viz.errors import CaptureError, OptionError

torch = pytest.importorskip("torch", reason="needs torch")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 4)

    def forward(self, x):
        y = torch.relu(self.first(x))
        z = torch.cumsum(y, -1)
        return torch.softmax(self.second(z), -1), y.sum(-1)


@pytest.fixture(scope="module")
def package(capture_module, tmp_path_factory):
    from types import SimpleNamespace

    from torchtrt_viz.aot.package import export_package, load_package

    torch.manual_seed(11)
    module = Net().eval()
    inputs = (torch.randn(4, 8),)
    batch = torch.export.Dim("batch", min=2, max=32)
    made = export_package(
        module,
        inputs,
        tmp_path_factory.mktemp("package") / "net.pt2",
        exclude=["aten.cumsum"],
        dynamic_shapes={"x": {0: batch}},
    )
    return SimpleNamespace(made=made, module=module, inputs=inputs, run=load_package(made.path))


@pytest.fixture
def switch(capture_module, tmp_path):
    """The process-wide switch, set to a folder of the test, and put back."""
    from torchtrt_viz.runtime.torch_ops import load_torch_ops

    load_torch_ops()
    torch.ops.tensorrt.set_profile_path_prefix(str(tmp_path))
    yield torch.ops.tensorrt
    torch.ops.tensorrt.set_profile_execution(False)
    capture_module.reset_profile()


pytestmark = pytest.mark.slow


def test_results_equal_eager_at_every_size(package):
    assert [name for name in package.made.engines] == ["net_000", "net_001"]
    for size in (4, 2, 32, 7):
        x = torch.randn(size, 8)
        with torch.no_grad():
            for have, want in zip(package.run(x), package.module(x), strict=True):
                torch.testing.assert_close(have, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("format", ["perfetto", "trex"])
def test_a_package_obeys_the_switch_after_it_was_loaded(package, switch, tmp_path, format, capture_module):
    package.run(*package.inputs)
    assert list(tmp_path.iterdir()) == []
    switch.set_profile_format(format)
    switch.set_profile_execution(True)
    assert switch.get_profile_execution() is True
    for _ in range(3):
        outputs = package.run(*package.inputs)
    switch.set_profile_execution(False)
    package.run(*package.inputs)
    capture_module.flush_sidecars()
    files = sorted(path.name for path in tmp_path.iterdir())
    for engine in package.made.engines:
        for what in (
            "engine_execution_profile.trace",
            "input_profile.trace",
            "output_profile.trace",
            "enqueue_profile.trace",
            "layer_information.json",
        ):
            assert sum(name.startswith(engine) and name.endswith(what) for name in files) == 1, (engine, what)
    for path in tmp_path.iterdir():
        json.loads(path.read_text())
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = package.run(*package.inputs)
    assert all(torch.equal(a, b) for a, b in zip(outputs, again, strict=True))
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    trace = tv.load(tmp_path)
    assert (trace.spans["kind"] == "layer").sum() >= 4


def test_the_switch_refuses_what_cannot_be(switch):
    before = switch.get_profile_format()
    for name, value in (("format", "json"), ("format", ""), ("path_prefix", "")):
        with pytest.raises(ValueError, match="cannot be"):
            getattr(switch, f"set_profile_{name}")(value)
    assert switch.get_profile_format() == before


def test_a_capture_reaches_the_engines_of_a_package(package):
    package.run(*package.inputs)
    with tv.profile(level="layers") as capture:
        package.run(*package.inputs)
        package.run(*package.inputs)
    spans = capture.trace.spans
    calls = spans[spans["name"] == "torchtrt.delegate"]
    outer = spans[spans["name"] == "torchtrt_viz::execute_engine"]
    assert len(calls) == len(outer) == 4
    # the engine's own record lies inside torch's record of the operator
    slack = 20_000
    for (_, call), (_, op) in zip(
        calls.sort_values("start_ns").iterrows(), outer.sort_values("start_ns").iterrows(), strict=True
    ):
        assert op["start_ns"] - slack <= call["start_ns"]
        assert call["start_ns"] + call["dur_ns"] <= op["start_ns"] + op["dur_ns"] + slack
    assert len(set(calls["run_id"])) == 2
    rows = np.flatnonzero(spans["kind"] == "layer")
    assert len(rows) >= 8
    assert capture.trace.args[int(rows[0])]["owner"] == "torch"
    for (_, enqueue), rows in (
        (item, spans[spans["parent"] == item[0]])
        for item in spans[spans["name"] == "torchtrt.enqueue_host"].iterrows()
    ):
        assert rows["dur_ns"].sum() <= enqueue["dur_ns"]


def test_nothing_is_recorded_when_nobody_asks(package, capture_module):
    before = {e["engine_id"]: e["files"] for e in capture_module.engines() if e["owner"] == "torch"}
    package.run(*package.inputs)
    after = {e["engine_id"]: e["files"] for e in capture_module.engines() if e["owner"] == "torch"}
    assert after == before
    assert all(e["level"] == "off" for e in capture_module.engines() if e["owner"] == "torch" and e["alive"])


def test_wrong_calls_are_refused(capture_module, tmp_path):
    from torchtrt_viz.aot.package import export_package, load_package

    with pytest.raises(OptionError, match=r"\.pt2"):
        export_package(Net(), (torch.randn(4, 8),), tmp_path / "net.so")
    with pytest.raises(OptionError, match="existing folder"):
        export_package(Net(), (torch.randn(4, 8),), tmp_path / "no" / "net.pt2")
    with pytest.raises(OptionError, match="tuple"):
        export_package(Net(), torch.randn(4, 8), tmp_path / "net.pt2")
    with pytest.raises(CaptureError, match="fits into an engine"):
        export_package(Net().eval(), (torch.randn(4, 8),), tmp_path / "net.pt2", exclude=["*"])
    with pytest.raises(CaptureError, match="does not exist"):
        load_package(tmp_path / "net.pt2")
    (tmp_path / "bad.pt2").write_bytes(b"not a package")
    with pytest.raises(CaptureError, match="cannot be loaded"):
        load_package(tmp_path / "bad.pt2")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.pt2"]
