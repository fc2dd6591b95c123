"""What of the product works on this machine, and what each gap costs.

Nothing here imports torch or a runtime unless it has to be tried to be known.
"""

from __future__ import annotations

import ctypes.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from torchtrt_viz._native import native
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.model.schema import Column, FrameSchema
from torchtrt_viz.runtime.modules import capture_module

__all__ = ["FINDINGS", "Finding", "examine"]

FINDINGS = FrameSchema(
    "doctor",
    (
        Column("area", "text", "core, capture, notebook, export, serving, cluster, tensorrt or gpu"),
        Column("name", "text", "the thing looked at"),
        Column(
            "state",
            "text",
            "ok, missing (optional and not there) or broken (there, or needed, and not working)",
        ),
        Column("detail", "text", "version, place, or what went wrong"),
        Column("cost", "text", "what cannot be done without it; empty when it is ok"),
        Column("remedy", "text", "what to do; empty when it is ok"),
    ),
    "one row per thing that the product needs or can use on this machine",
)


@dataclass(frozen=True)
class Finding:
    """One thing looked at.

    ``state`` is "ok", "missing" (optional and not there) or "broken" (there, or needed, and not working);
    ``cost`` says what cannot be done without it, ``remedy`` what to do.
    """

    area: str
    name: str
    state: str
    detail: str
    cost: str = ""
    remedy: str = ""


def examine() -> list[Finding]:
    """Look at everything and return the findings, needed things first."""
    findings = [_python()]
    findings += [_native(name, cost) for name, cost in _NATIVE.items()]
    findings += [_package(*row) for row in _PACKAGES]
    findings.append(_capture_module())
    findings += [_tensorrt_library(), _cuda()]
    return findings


def _python() -> Finding:
    try:
        detail = f"torchtrt_viz {version('torchtrt-viz')}, Python {sys.version.split()[0]}"
    except PackageNotFoundError:
        detail = f"torchtrt_viz from a source tree, Python {sys.version.split()[0]}"
    return Finding("core", "torchtrt_viz", "ok", detail)


_NATIVE = {
    "columns": "no file can be loaded",
    "etdump": "ETDump files cannot be loaded",
    "kineto": "torch.profiler and Chrome traces cannot be loaded",
    "perfetto": "Perfetto protobuf traces cannot be loaded",
    "trex": "layer information of TensorRT engines cannot be loaded",
}

# area, distribution, module, extra, what cannot be done without it
_PACKAGES: tuple[tuple[str, str, str, str, str], ...] = (
    ("capture", "torch", "torch", "capture", "no torch.profiler activity, no export of programs"),
    ("capture", "executorch", "executorch", "capture", "no .pte can be exported, run or profiled"),
    ("notebook", "ipython", "IPython", "lab", "no %%trtprofile"),
    ("notebook", "anywidget", "anywidget", "lab", "no interactive timeline in notebooks (HTML export works)"),
    ("notebook", "ipywidgets", "ipywidgets", "lab", "no capture panel and no linked tables"),
    ("notebook", "plotly", "plotly", "lab", "no charts"),
    ("notebook", "jupyterlab", "jupyterlab", "lab", "no JupyterLab here (another notebook host may serve)"),
    ("export", "openpyxl", "openpyxl", "lab", "no export to xlsx"),
    ("serving", "starlette", "starlette", "serving", "no HTTP control of serving captures"),
    ("serving", "uvicorn", "uvicorn", "serving", "no built-in server for the HTTP control"),
    ("cluster", "distributed", "distributed", "cluster", 'no load(..., engine="dask")'),
    ("tensorrt", "tensorrt", "tensorrt", "tensorrt", "no TensorRT engines in Python; host engines work"),
    (
        "tensorrt",
        "torch_tensorrt",
        "torch_tensorrt",
        "",
        "no Torch-TensorRT modules; their trace files load all the same",
    ),
)


def _native(name: str, cost: str) -> Finding:
    try:
        native(name)
    except TorchTrtVizError as error:
        return Finding(
            "core", f"native {name}", "broken", str(error), cost, "reinstall torchtrt-viz with g++ present"
        )
    return Finding("core", f"native {name}", "ok", "loaded")


def _package(area: str, distribution: str, module: str, extra: str, cost: str) -> Finding:
    remedy = (
        f"pip install 'torchtrt-viz[{extra}]'" if extra else f"install {distribution} as its own manual says"
    )
    if find_spec(module) is None:
        return Finding(area, distribution, "missing", "not installed", cost, remedy)
    try:
        return Finding(area, distribution, "ok", version(distribution))
    except PackageNotFoundError:
        return Finding(area, distribution, "ok", "version unknown")


def _try(area: str, name: str, probe: Callable[[], str], cost: str, remedy: str) -> Finding:
    try:
        return Finding(area, name, "ok", probe())
    except (ImportError, OSError, RuntimeError, TorchTrtVizError) as error:
        return Finding(area, name, "broken", str(error).splitlines()[0], cost, remedy)


def _capture_module() -> Finding:
    cost = "programs cannot be run under the profiler; files load all the same"
    if find_spec("executorch") is None:
        return Finding(
            "capture",
            "native capture",
            "missing",
            "executorch is not installed",
            cost,
            "pip install 'torchtrt-viz[capture]'",
        )

    def probe() -> str:
        module = capture_module()
        backends = ", ".join(module.registered_backends())
        return f"built with executorch {module.built_with()['executorch']}; delegates: {backends}"

    return _try(
        "capture", "native capture", probe, cost, "pip install --force-reinstall --no-cache-dir torchtrt-viz"
    )


def _tensorrt_library() -> Finding:
    cost = "TensorRT plans cannot run in the delegate; the host engine stands in (real numerics, CPU times)"
    found = ctypes.util.find_library("nvinfer")
    if found is None:
        return Finding(
            "tensorrt",
            "libnvinfer",
            "missing",
            "not on the library path",
            cost,
            "install TensorRT for this system",
        )
    return Finding("tensorrt", "libnvinfer", "ok", found)


def _cuda() -> Finding:
    cost = "no GPU times can be captured here; files captured elsewhere load all the same"
    found = ctypes.util.find_library("cuda")
    if found is None:
        return Finding(
            "gpu",
            "CUDA driver",
            "missing",
            "no libcuda on the library path",
            cost,
            "run on a machine with an NVIDIA GPU",
        )
    return Finding("gpu", "CUDA driver", "ok", found)
