"""The core and its optional packages, as they are installed."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from torchtrt_viz._native import native
from torchtrt_viz.doctor.findings import Finding
from torchtrt_viz.errors import TorchTrtVizError

__all__ = ["REINSTALL", "installed", "look_at_core", "look_at_packages", "version_of"]

REINSTALL = "pip install --force-reinstall --no-deps --no-cache-dir torchtrt-viz"

_NATIVE = {
    "columns": "no file can be loaded",
    "etdump": "ETDump files cannot be loaded",
    "kineto": "torch.profiler and Chrome traces cannot be loaded",
    "perfetto": "Perfetto protobuf traces cannot be loaded",
    "trex": "layer information of TensorRT engines cannot be loaded",
}

# area, distribution, module, extra, what cannot be done without it
_PACKAGES = (
    ("notebook", "ipython", "IPython", "lab", "no %%trtprofile"),
    ("notebook", "anywidget", "anywidget", "lab", "no interactive timeline in notebooks (HTML export works)"),
    ("notebook", "ipywidgets", "ipywidgets", "lab", "no capture panel and no linked tables"),
    ("notebook", "plotly", "plotly", "lab", "no charts"),
    ("notebook", "jupyterlab", "jupyterlab", "lab", "no JupyterLab here (another notebook host may serve)"),
    ("export", "openpyxl", "openpyxl", "lab", "no export to xlsx"),
    ("queries", "duckdb", "duckdb", "sql", "no trace.sql() and session.sql()"),
    ("remote", "fsspec", "fsspec", "remote", "no load() of URLs"),
    ("serving", "starlette", "starlette", "serving", "no HTTP control of serving captures"),
    ("serving", "uvicorn", "uvicorn", "serving", "no built-in server for the HTTP control"),
    ("cluster", "distributed", "distributed", "cluster", 'no load(..., engine="dask")'),
    ("agents", "mcp", "mcp", "mcp", "no server for agents (trtprofile mcp)"),
)


def installed(module: str) -> bool:
    """Tell whether a module can be found, without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a parent that cannot be imported, a module without a spec
        return False


def version_of(distribution: str) -> str:
    """Return the version of an installed distribution, or "version unknown"."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "version unknown"


def look_at_core() -> list[Finding]:
    """Look at this package and the compiled modules that every file needs."""
    try:
        made = f"torchtrt_viz {version('torchtrt-viz')}"
    except PackageNotFoundError:
        made = "torchtrt_viz from a source tree"
    findings = [Finding("core", "torchtrt_viz", "ok", f"{made}, Python {sys.version.split()[0]}")]
    for name, cost in _NATIVE.items():
        try:
            native(name)
        except TorchTrtVizError as error:
            findings.append(
                Finding("core", f"native {name}", "broken", _before_remedy(error), cost, REINSTALL)
            )
        else:
            findings.append(Finding("core", f"native {name}", "ok", "loaded"))
    return findings


def _before_remedy(error: TorchTrtVizError) -> str:
    return str(error).splitlines()[0].split(". Reinstall")[0]


def look_at_packages() -> list[Finding]:
    """Look at the packages that single features need."""
    return [_package(*row) for row in _PACKAGES]


def _package(area: str, distribution: str, module: str, extra: str, cost: str) -> Finding:
    if installed(module):
        return Finding(area, distribution, "ok", version_of(distribution))
    return Finding(
        area, distribution, "missing", "not installed", cost, f"pip install 'torchtrt-viz[{extra}]'"
    )
