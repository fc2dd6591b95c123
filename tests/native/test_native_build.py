"""The C++ tests, built under the sanitizers and run by ctest."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_build import build, ctest

pytestmark = [pytest.mark.native, pytest.mark.timeout(1800)]

CORE = (
    "core_tests",
    "blob_tests",
    "torch_functions_tests",
    "race_tests",
    "columns_tests",
    "tensorrt_tests",
)
EXECUTORCH = ("executorch_tests", "no_tracer_tests")


def test_core_under_the_thread_sanitizer(root: Path, tmp_path: Path) -> None:
    targets = ("core_tests", "race_tests", "tensorrt_tests")
    build(root, tmp_path, targets, "-DTORCHTRT_VIZ_CAPTURE=OFF", "-DTORCHTRT_VIZ_SANITIZE=thread")
    output = ctest(tmp_path, targets, TSAN_OPTIONS="halt_on_error=1")
    assert "100% tests passed out of 3" in output


def test_all_under_the_address_and_undefined_behaviour_sanitizers(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("executorch", reason="the delegate's tests need executorch")
    torch = pytest.importorskip("torch", reason="the tests' program is exported with torch")
    from torchtrt_viz.aot import export_program

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
            self.out = torch.nn.Linear(4, 4)

        def forward(self, x):
            return torch.cumsum(self.out(torch.relu(self.conv(x)).mean((2, 3))), 1)

    program = tmp_path / "net.pte"
    exported = export_program(Net().eval(), (torch.ones(1, 3, 8, 8),), program, etrecord=False)
    assert [region.backend for region in exported.regions] == ["TensorRTBackend"]
    folder = tmp_path / "build"
    build(root, folder, CORE + EXECUTORCH, "-DTORCHTRT_VIZ_SANITIZE=address,undefined")
    environment = {
        "TORCHTRT_VIZ_TEST_PROGRAM": str(program),
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    assert "100% tests passed out of 6" in ctest(folder, CORE, **environment)
    # the runtime keeps its registries for ever: its leaks are not ours to look at
    output = ctest(folder, EXECUTORCH, ASAN_OPTIONS="detect_leaks=0", **environment)
    assert "100% tests passed out of 2" in output
