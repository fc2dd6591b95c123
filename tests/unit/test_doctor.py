"""What doctor says in environments that lack something: what it costs, and what closes the gap there."""

from __future__ import annotations

import json
import shlex
import sys
from types import SimpleNamespace

import pytest
from faked_packages import hide, pretend

from torchtrt_viz.doctor import gpu, packages, programs
from torchtrt_viz.doctor.findings import Finding
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.runtime import modules, operator_owner
from torchtrt_viz.runtime.operator_owner import Owner

CAPTURE = "pip install 'torchtrt-viz[capture]'"


class Module(SimpleNamespace):
    """A capture module that loads."""

    def __init__(self, tensorrt: bool = False, problem: str = "the TensorRT engine is not compiled in"):
        super().__init__(
            TENSORRT_ENGINE=tensorrt,
            tensorrt_problem=lambda: problem,
            built_with=lambda: {"executorch": "1.5.1"},
            registered_backends=lambda: ["XnnpackBackend", "TensorRTBackend"],
        )


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """An extension built with executorch 1.5.1, no GPU, and no process that looks at torch's operators."""
    monkeypatch.setattr(modules, "recorded_build", lambda: {"executorch": "1.5.1"})
    monkeypatch.setattr(programs, "recorded_build", lambda: {"executorch": "1.5.1"})
    monkeypatch.setattr(programs, "capture_module", modules.capture_module.__wrapped__)
    monkeypatch.setattr(programs, "find_owner", lambda: Owner("torchtrt_viz"))
    monkeypatch.setattr(gpu.ctypes.util, "find_library", lambda name: None)


def loads(monkeypatch, module: Module) -> None:
    monkeypatch.setattr(programs, "capture_module", lambda: module)


def rows(findings: list[Finding]) -> dict[str, Finding]:
    for finding in findings:
        assert finding.state == "ok" or (finding.cost and finding.remedy), finding
        assert finding.state in ("ok", "missing", "broken")
    return {finding.name: finding for finding in findings}


# -- torch and executorch ----------------------------------------------------------------------------------


def test_everything_fits(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "torch", "2.15.0")
    pretend(monkeypatch, tmp_path, "executorch", "1.5.0")
    loads(monkeypatch, Module(tensorrt=True))
    found = rows(programs.look_at_programs())
    assert {row.state for row in found.values()} == {"ok"}
    assert found["torch"].detail == "2.15.0 (fits: 2.10 or later)"
    assert found["executorch"].detail == "1.5.0 (fits: built against 1.5.1)"
    assert (
        found["native capture"].detail
        == "built with executorch 1.5.1; delegates: XnnpackBackend, TensorRTBackend"
    )
    assert found["engines"].detail == "compiled in: host, tensorrt"
    assert found["torch.ops.tensorrt"].detail == "set_profile_* is defined by torchtrt_viz"


def test_without_torch(monkeypatch, tmp_path):
    hide(monkeypatch, "torch")
    pretend(monkeypatch, tmp_path, "executorch", "1.5.1")
    loads(monkeypatch, Module())
    found = rows(programs.look_at_programs())
    assert found["torch"].state == found["torch.ops.tensorrt"].state == "missing"
    assert found["torch"].remedy == found["torch.ops.tensorrt"].remedy == CAPTURE
    assert "no torch.profiler activity in captures and serving" in found["torch"].cost
    assert found["native capture"].state == "ok"  # programs run without torch


def test_without_executorch(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "torch", "2.13.0+cpu")
    hide(monkeypatch, "executorch")
    monkeypatch.setattr(programs, "find_owner", lambda: Owner("", "executorch is needed"))
    found = rows(programs.look_at_programs())
    assert found["torch"].state == "ok"
    for name in ("executorch", "native capture", "engines", "torch.ops.tensorrt"):
        assert found[name].state == "missing", name
        assert found[name].remedy == CAPTURE
    assert found["native capture"].detail == "left out: executorch is not installed"
    assert found["torch.ops.tensorrt"].detail == "set_profile_* is defined by nobody"


def test_with_another_executorch(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "torch", "2.14.1")
    pretend(monkeypatch, tmp_path, "executorch", "1.6.0")
    monkeypatch.setattr(programs, "find_owner", lambda: Owner("", "executorch does not fit"))
    hide(monkeypatch, "torch_tensorrt")
    found = rows(programs.look_at_programs())
    assert found["executorch"].detail == "1.6.0 does not fit: built against 1.5.1, works with 1.5.*"
    assert found["executorch"].remedy == "pip install 'executorch==1.5.*'"
    for name in ("native capture", "engines", "torch.ops.tensorrt"):
        assert (found[name].state, found[name].remedy) == ("missing", found["executorch"].remedy)
    assert found["native capture"].detail == "left out: executorch does not fit"


def test_beside_a_torch_tensorrt_that_asks_for_another_executorch(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "torch", "2.14.1")
    pretend(monkeypatch, tmp_path, "executorch", "1.4.1")
    asked = ("torch==2.14.*", 'executorch<1.5,>=1.4; extra == "executorch"')
    pretend(monkeypatch, tmp_path, "torch-tensorrt", "2.14.0", asked)
    monkeypatch.setattr(programs, "find_owner", lambda: Owner("torch_tensorrt", "executorch does not fit"))
    found = rows(programs.look_at_programs())
    assert found["executorch"].detail == (
        "1.4.1 does not fit: built against 1.5.1, works with 1.5.*; torch-tensorrt 2.14.0 asks for another"
    )
    # a replaced executorch would take Torch-TensorRT's exporter away
    assert found["executorch"].remedy == (
        "python3 -m venv capture && capture/bin/pip install 'torchtrt-viz[capture]'"
    )
    assert "files load all the same" in found["native capture"].cost
    assert found["torch.ops.tensorrt"].detail == "set_profile_* is defined by Torch-TensorRT"
    assert rows(gpu.look_at_gpu())["torch_tensorrt"].detail == "2.14.0"


def test_a_torch_that_is_too_old_for_the_operators(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "torch", "2.9.1+cu128")
    pretend(monkeypatch, tmp_path, "executorch", "1.5.1")
    loads(monkeypatch, Module())
    found = rows(programs.look_at_programs())
    assert found["torch"].detail == "2.9.1+cu128 is older than 2.10, which the torch operators need"
    assert found["torch"].remedy == found["torch.ops.tensorrt"].remedy == "pip install 'torch>=2.10'"
    assert found["native capture"].state == "ok"


def test_an_extension_that_is_broken_with_the_right_executorch_is_reinstalled(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "executorch", "1.5.1")

    def broken():
        raise TorchTrtVizError("the compiled module cannot be loaded (undefined symbol: x). Reinstall it")

    monkeypatch.setattr(programs, "capture_module", broken)
    found = programs.native_capture()
    assert found.state == "broken"
    assert found.detail == "the compiled module cannot be loaded (undefined symbol: x)"
    assert found.remedy == packages.REINSTALL


def test_operators_that_torch_refuses_are_broken(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "torch", "2.16.0")
    pretend(monkeypatch, tmp_path, "executorch", "1.5.1")
    loads(monkeypatch, Module())
    refused = Owner("", "torch 2.16.0 does not take the operators", "libnvinfer.so.11: cannot open")
    monkeypatch.setattr(programs, "find_owner", lambda: refused)
    found = rows(programs.look_at_programs())["torch.ops.tensorrt"]
    assert found.state == "broken"
    assert found.detail == (
        "torch 2.16.0 does not take the operators; "
        "torch_tensorrt cannot be imported (libnvinfer.so.11: cannot open)"
    )


# -- packages ----------------------------------------------------------------------------------------------


def test_a_feature_without_its_package_names_the_extra(monkeypatch):
    hide(monkeypatch, "plotly", "starlette", "fsspec")
    found = rows(packages.look_at_packages())
    for name, extra in (("plotly", "lab"), ("starlette", "serving"), ("fsspec", "remote")):
        assert found[name].state == "missing"
        assert found[name].remedy == f"pip install 'torchtrt-viz[{extra}]'"
        assert shlex.split(found[name].remedy)[0] == "pip"


def test_a_package_without_metadata_is_there_all_the_same(monkeypatch, tmp_path):
    (tmp_path / "openpyxl.py").touch()
    hide(monkeypatch, "openpyxl")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "openpyxl", SimpleNamespace(__spec__=object()))
    assert rows(packages.look_at_packages())["openpyxl"].detail == "version unknown"


# -- TensorRT and the GPU ----------------------------------------------------------------------------------


def test_without_a_gpu_nothing_is_to_be_installed(monkeypatch):
    hide(monkeypatch, "tensorrt", "tensorrt_rtx", "torch_tensorrt")
    monkeypatch.setattr(gpu, "usable_module", Module)
    found = rows(gpu.look_at_gpu())
    assert set(found) == {"tensorrt", "tensorrt_rtx", "torch_tensorrt", "plans", "CUDA driver"}
    for row in found.values():
        assert row.state == "missing"
        assert row.remedy == "nothing to install here: run on a machine with an NVIDIA GPU"


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        (Module(), programs.BUILD_TENSORRT),
        (
            Module(True, "TensorRT's library cannot be opened (libnvinfer.so.10: cannot open)"),
            "pip install 'tensorrt==10.*'",
        ),
        (
            Module(True, "the CUDA runtime library cannot be opened (libcudart.so.13: cannot open)"),
            "pip install 'nvidia-cuda-runtime==13.*'",
        ),
        (
            Module(True, "the CUDA runtime library cannot be opened (libcudart.so.12: cannot open)"),
            "pip install nvidia-cuda-runtime-cu12",
        ),
        (
            Module(True, "asking for a GPU failed: CUDA error 100 (no device)"),
            "nvidia-smi shows whether the driver works",
        ),
    ],
)
def test_with_a_gpu_the_next_step_to_running_plans_is_named(monkeypatch, module, remedy):
    monkeypatch.setattr(gpu.ctypes.util, "find_library", lambda name: f"lib{name}.so.1")
    monkeypatch.setattr(gpu, "usable_module", lambda: module)
    found = rows(gpu.look_at_gpu())
    assert found["CUDA driver"].state == "ok"
    assert (found["plans"].state, found["plans"].remedy) == ("missing", remedy)
    assert found["plans"].detail == module.tensorrt_problem()


def test_plans_run(monkeypatch):
    monkeypatch.setattr(gpu.ctypes.util, "find_library", lambda name: f"lib{name}.so.1")
    monkeypatch.setattr(gpu, "usable_module", lambda: Module(True, ""))
    assert rows(gpu.look_at_gpu())["plans"].state == "ok"


@pytest.mark.parametrize(
    ("torch", "remedy"),
    [
        ("2.14.1", "pip install 'torch-tensorrt==2.14.*'"),
        (
            "2.13.0+cpu",
            "torch 2.13.0+cpu has no CUDA: pip install --force-reinstall torch torch-tensorrt",
        ),
    ],
)
def test_torch_tensorrt_comes_in_the_version_of_torch(monkeypatch, tmp_path, torch, remedy):
    hide(monkeypatch, "torch_tensorrt")
    pretend(monkeypatch, tmp_path, "torch", torch)
    monkeypatch.setattr(gpu.ctypes.util, "find_library", lambda name: f"lib{name}.so.1")
    monkeypatch.setattr(gpu, "usable_module", Module)
    assert rows(gpu.look_at_gpu())["torch_tensorrt"].remedy == remedy


# -- whose operators -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returncode", "stdout", "stderr", "owner"),
    [
        (0, 'noise\n{"library": "torch_tensorrt", "problem": ""}\n', "", "torch_tensorrt"),
        (-11, "", "", "the process that tried ended with -11"),
        (1, "", "Traceback\nImportError: libcudart.so.13", "ImportError: libcudart.so.13"),
    ],
)
def test_another_process_looks_at_the_operators(monkeypatch, returncode, stdout, stderr, owner):
    def run(command, **options):
        assert command == [sys.executable, "-m", "torchtrt_viz.runtime.operator_owner"]
        assert options["env"]["PYTHONPATH"].split(":") == [path for path in sys.path if path]
        return SimpleNamespace(returncode=returncode, stdout=stdout, stderr=stderr)

    monkeypatch.setattr(operator_owner, "loaded_torch", lambda: None)
    monkeypatch.setattr(operator_owner.subprocess, "run", run)
    found = operator_owner.find_owner()
    assert (found.library or found.problem) == owner
    assert json.dumps(found.__dict__)
