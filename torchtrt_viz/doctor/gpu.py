"""TensorRT in its forms, and the GPU that all of them need."""

from __future__ import annotations

import ctypes.util
import re

from torchtrt_viz.doctor.findings import Finding
from torchtrt_viz.doctor.packages import installed, version_of
from torchtrt_viz.doctor.programs import BUILD_TENSORRT, native_capture, usable_module

__all__ = ["look_at_gpu"]

_ELSEWHERE = "nothing to install here: run on a machine with an NVIDIA GPU"


def look_at_gpu() -> list[Finding]:
    """Look at TensorRT and the GPU."""
    driver = ctypes.util.find_library("cuda")
    return [
        _python_package("tensorrt", "pip install 'torchtrt-viz[tensorrt]'", driver),
        _python_package(
            "tensorrt_rtx", "install the wheel in the folder python of the TensorRT-RTX SDK", driver
        ),
        _torch_tensorrt(driver),
        _plans(driver),
        _driver(driver),
    ]


def _driver(driver: str | None) -> Finding:
    if driver is not None:
        return Finding("gpu", "CUDA driver", "ok", driver)
    cost = "no GPU times can be captured here; files captured elsewhere load all the same"
    return Finding("gpu", "CUDA driver", "missing", "no libcuda on the library path", cost, _ELSEWHERE)


def _python_package(module: str, command: str, driver: str | None) -> Finding:
    if installed(module):
        return Finding("tensorrt", module, "ok", version_of(module))
    cost = f"no engines of {module} in Python (attach()); their files load all the same"
    return Finding(
        "tensorrt", module, "missing", "not installed", cost, _ELSEWHERE if driver is None else command
    )


def _torch_tensorrt(driver: str | None) -> Finding:
    name = "torch_tensorrt"
    if installed(name):
        return Finding("tensorrt", name, "ok", version_of("torch-tensorrt"))
    torch = version_of("torch") if installed("torch") else ""
    if driver is None:
        remedy = _ELSEWHERE
    elif torch.endswith("+cpu"):
        remedy = f"torch {torch} has no CUDA: pip install --force-reinstall torch torch-tensorrt"
    else:
        minor = ".".join(re.findall(r"\d+", torch)[:2])
        remedy = f"pip install 'torch-tensorrt=={minor}.*'" if minor else "pip install torch-tensorrt"
    cost = "no Torch-TensorRT modules; their trace files load all the same"
    return Finding("tensorrt", name, "missing", "not installed", cost, remedy)


def _plans(driver: str | None) -> Finding:
    """Look at what the TensorRT engine of the capture extension needs to run a plan."""
    cost = "TensorRT plans cannot run in programs; the host engine stands in (real numerics, CPU times)"
    module = usable_module()
    problem = "the capture extension is left out" if module is None else module.tensorrt_problem()
    if problem == "":
        return Finding("tensorrt", "plans", "ok", "TensorRT, the CUDA runtime and a GPU are there")
    if driver is None:
        remedy = _ELSEWHERE
    elif module is None:
        remedy = native_capture().remedy
    elif not module.TENSORRT_ENGINE:
        remedy = BUILD_TENSORRT
    else:
        remedy = _library_command(problem)
    return Finding("tensorrt", "plans", "missing", problem.splitlines()[0], cost, remedy)


def _library_command(problem: str) -> str:
    """Return what installs the library that could not be opened, in the version that was looked for."""
    nvinfer = re.search(r"libnvinfer\.so\.(\d+)", problem)
    if nvinfer is not None:
        return f"pip install 'tensorrt=={nvinfer[1]}.*'"
    cudart = re.search(r"libcudart\.so\.(\d+)", problem)
    if cudart is None:
        return "nvidia-smi shows whether the driver works"
    major = int(cudart[1])
    # the distributions' names lost their suffix with CUDA 13
    return (
        f"pip install 'nvidia-cuda-runtime=={major}.*'"
        if major >= 13
        else f"pip install nvidia-cuda-runtime-cu{major}"
    )
