"""What runs and captures programs: torch, executorch, the capture extension, its engines and operators."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from subprocess import TimeoutExpired
from types import ModuleType

from torchtrt_viz.doctor.findings import Finding
from torchtrt_viz.doctor.packages import REINSTALL, installed, version_of
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.runtime.modules import capture_module, executorch_mismatch, recorded_build
from torchtrt_viz.runtime.operator_owner import find_owner
from torchtrt_viz.runtime.torch_ops import OLDEST_TORCH

__all__ = ["BUILD_TENSORRT", "look_at_programs", "native_capture", "usable_module"]

_CAPTURE = "pip install 'torchtrt-viz[capture]'"
_APART = "python3 -m venv capture && capture/bin/pip install 'torchtrt-viz[capture]'"
#: The command that builds the TensorRT engine in.
BUILD_TENSORRT = (
    "TENSORRT_INCLUDE_DIR=<folder of NvInfer.h> CUDA_HOME=<folder of CUDA> "
    f"{REINSTALL} --no-binary torchtrt-viz"
)
_NO_PROGRAMS = "no .pte can be run or profiled; files load all the same"
_NO_SWITCH = "no process-wide switch, and no engines in AOTInductor packages"


def look_at_programs() -> list[Finding]:
    """Look at what a capture of a program needs."""
    return [_torch(), _executorch(), native_capture(), _engines(), _operators()]


def usable_module() -> ModuleType | None:
    """Return the capture module; None where it cannot be loaded."""
    try:
        return capture_module()
    except TorchTrtVizError:
        return None


def _torch() -> Finding:
    if not installed("torch"):
        cost = "no torch.profiler activity in captures and serving, no export of programs"
        return Finding("capture", "torch", "missing", "not installed", cost, _CAPTURE)
    found = version_of("torch")
    oldest = ".".join(map(str, OLDEST_TORCH))
    if _release(found) < OLDEST_TORCH:
        detail = f"{found} is older than {oldest}, which the torch operators need"
        cost = f"{_NO_SWITCH}; torch.profiler works"
        return Finding("capture", "torch", "missing", detail, cost, f"pip install 'torch>={oldest}'")
    return Finding("capture", "torch", "ok", f"{found} (fits: {oldest} or later)")


def _release(text: str) -> tuple[int, ...]:
    """Major and minor number; what cannot be read is taken to fit."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2]) or OLDEST_TORCH


def _executorch() -> Finding:
    if not installed("executorch"):
        cost = f"{_NO_PROGRAMS}, and no program can be exported"
        return Finding("capture", "executorch", "missing", "not installed", cost, _CAPTURE)
    found = version_of("executorch")
    mismatch = executorch_mismatch(recorded_build())
    if mismatch is not None:
        detail = f"{found} does not fit: built against {mismatch.built}, works with {mismatch.fitting[2:]}"
        holder = _holder()
        remedy = _APART if holder else f"pip install 'executorch{mismatch.fitting}'"
        if holder:
            detail += f"; {holder} asks for another"
        return Finding("capture", "executorch", "missing", detail, _NO_PROGRAMS, remedy)
    built = recorded_build().get("executorch")
    detail = f"{found} (fits: built against {built})" if built else found
    return Finding("capture", "executorch", "ok", detail)


def _holder() -> str:
    """Name the package beside which executorch cannot simply be replaced; empty without any."""
    for name in ("torch-tensorrt", "torch-tensorrt-rtx"):
        try:
            asked = requires(name) or []
        except PackageNotFoundError:
            continue
        if any(re.match(r"executorch\b", line) for line in asked):
            return f"{name} {version_of(name)}"
    return ""


def native_capture() -> Finding:
    """Look at the compiled module that loads and runs programs."""
    try:
        module = capture_module()
    except TorchTrtVizError as error:
        if not installed("executorch"):
            detail, remedy = "left out: executorch is not installed", _CAPTURE
        elif executorch_mismatch(recorded_build()) is not None:
            detail, remedy = "left out: executorch does not fit", _executorch().remedy
        else:
            detail = str(error).splitlines()[0].split(". Reinstall")[0]
            return Finding("capture", "native capture", "broken", detail, _NO_PROGRAMS, REINSTALL)
        return Finding("capture", "native capture", "missing", detail, _NO_PROGRAMS, remedy)
    backends = ", ".join(module.registered_backends())
    made = module.built_with()["executorch"]
    return Finding("capture", "native capture", "ok", f"built with executorch {made}; delegates: {backends}")


def _engines() -> Finding:
    module = usable_module()
    if module is None:
        row = native_capture()
        return Finding("capture", "engines", "missing", "none without native capture", row.cost, row.remedy)
    if module.TENSORRT_ENGINE:
        return Finding("capture", "engines", "ok", "compiled in: host, tensorrt")
    return Finding(
        "capture",
        "engines",
        "missing",
        "compiled in: host; not tensorrt",
        "TensorRT plans cannot run in programs; the host engine stands in (real numerics, CPU times)",
        f"to run plans on an NVIDIA GPU, build it in: {BUILD_TENSORRT}",
    )


def _operators() -> Finding:
    name = "torch.ops.tensorrt"
    torch = _torch()
    if torch.state != "ok":
        return Finding("capture", name, "missing", f"torch: {torch.detail}", _NO_SWITCH, torch.remedy)
    try:
        owner = find_owner()
    except TimeoutExpired as error:
        detail = f"torch and the operators were not loaded after {error.timeout:.0f} s"
        return Finding("capture", name, "broken", detail, _NO_SWITCH, "python -c 'import torch' shows why")
    module = native_capture()
    aside = f"; torch_tensorrt cannot be imported ({owner.torch_tensorrt})" if owner.torch_tensorrt else ""
    if owner.problem and module.state == "ok":
        return Finding("capture", name, "broken", owner.problem + aside, _NO_SWITCH, REINSTALL)
    if owner.library == "":
        detail = "set_profile_* is defined by nobody" + aside
        return Finding("capture", name, "missing", detail, _NO_SWITCH, module.remedy)
    whose = "Torch-TensorRT" if owner.library == "torch_tensorrt" else "torchtrt_viz"
    return Finding("capture", name, "ok", f"set_profile_* is defined by {whose}{aside}")
