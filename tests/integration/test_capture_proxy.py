"""Other people's delegates behind a proxy: timed, unchanged in what they compute, the file untouched."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from torchtrt_viz.errors import CaptureError, OptionError

XNNPACK, PROXY = "XnnpackBackend", "XnnpackTimed01"


@pytest.fixture(scope="module")
def xnnpack_program(capture_module, tmp_path_factory):
    import torch

    from torchtrt_viz.aot import export_program

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(8, 8)
            self.second = torch.nn.Linear(8, 4)

        def forward(self, x):
            return self.second(torch.cumsum(torch.relu(self.first(x)), 1))

    path = tmp_path_factory.mktemp("proxy") / "net.pte"
    torch.manual_seed(0)
    exported = export_program(
        Net().eval(), (torch.randn(3, 8),), path, exclude=[lambda node: True], etrecord=False
    )
    assert {region.backend for region in exported.regions} == {XNNPACK, "portable"}
    return path


@pytest.fixture(scope="module")
def proxied(capture_module, xnnpack_program):
    capture_module.wrap_backend(XNNPACK, PROXY)
    content = xnnpack_program.read_bytes()
    copy, renamed = capture_module.rename_backends(content, {XNNPACK: PROXY})
    path = xnnpack_program.with_name("proxied.pte")
    path.write_bytes(copy)
    assert renamed == {XNNPACK: 2}
    assert len(copy) == len(content)
    differing = sum(a != b for a, b in zip(copy, content, strict=True))
    assert 0 < differing <= 2 * len(XNNPACK)
    return path


def test_the_original_is_never_changed(xnnpack_program, proxied, capture_module):
    digest = hashlib.sha256(xnnpack_program.read_bytes()).hexdigest()
    with capture_module.Session(str(proxied), {PROXY: {"torchtrt_profile_level": "delegate"}}) as session:
        session.run("forward", [np.ones((3, 8), "float32")])
    assert hashlib.sha256(xnnpack_program.read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("level", ["off", "delegate", "phases", "layers"])
def test_calls_are_timed_and_results_bit_equal(xnnpack_program, proxied, capture_module, level):
    x = np.linspace(-1, 1, 24, dtype="float32").reshape(3, 8)
    with capture_module.Session(str(xnnpack_program)) as plain:
        expected = plain.run("forward", [x])[0]
    with capture_module.Session(str(proxied), {PROXY: {"torchtrt_profile_level": level}}) as session:
        assert np.array_equal(session.run("forward", [x])[0], expected)
        content = session.etdump()
        engines = session.engines()
    assert len(engines) == 2
    assert {engine["runtime"] for engine in engines} == {XNNPACK}
    assert [engine["delegate_index"] for engine in engines] == [0, 1]
    # what is inside the backend is its own affair: no phases are made up
    assert content.count(b"torchtrt.delegate\0") == (0 if level == "off" else 1)  # a text is stored once
    assert b"torchtrt.input_binding" not in content
    assert b"Fully Connected" in content  # the wrapped backend's own events go on
    assert {engine["level"] for engine in engines} == {"off" if level == "off" else "delegate"}


def test_wrong_options_and_wrong_ids_are_refused(capture_module, proxied, xnnpack_program):
    with pytest.raises(OptionError, match="off, delegate, phases or layers"):
        capture_module.Session(str(proxied), {PROXY: {"torchtrt_profile_level": "much"}})
    with pytest.raises(OptionError, match="14 characters"):
        capture_module.wrap_backend(XNNPACK, "Short")
    with pytest.raises(OptionError, match="is registered"):
        capture_module.wrap_backend("TensorRTBackend", "TensorRTBackend")
    with pytest.raises(CaptureError, match="no backend 'NobodysBackend'"):
        capture_module.wrap_backend("NobodysBackend", "NobodysProxied")
    capture_module.wrap_backend(XNNPACK, PROXY)  # the same pair again: nothing
    with pytest.raises(OptionError, match="already wraps"):
        capture_module.wrap_backend("OtherBackend12", PROXY)
    with pytest.raises(OptionError, match="same length"):
        capture_module.rename_backends(xnnpack_program.read_bytes(), {XNNPACK: "short"})


def test_damaged_programs_are_refused_or_harmless(capture_module, xnnpack_program):
    content = xnnpack_program.read_bytes()
    for size in (0, 3, 8, 40, 200):
        with pytest.raises(CaptureError):
            capture_module.rename_backends(content[:size], {XNNPACK: PROXY})
    generator = np.random.default_rng(7)
    for _ in range(500):
        spoiled = bytearray(content[:4096])
        for place in generator.integers(0, 1024, 4):
            spoiled[place] = generator.integers(0, 256)
        try:
            copy, _ = capture_module.rename_backends(bytes(spoiled), {XNNPACK: PROXY})
        except CaptureError:
            continue
        assert len(copy) == len(spoiled)
