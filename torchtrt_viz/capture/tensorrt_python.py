"""TensorRT's Python packages: their contexts, profilers and inspectors, whichever of the packages it is."""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import CaptureError, OptionError
from torchtrt_viz.formats.io.new_file import write_file

__all__ = ["build_log", "contexts_in", "is_context", "layer_information", "layer_profiler"]

_PACKAGES = ("tensorrt", "tensorrt_lean", "tensorrt_rtx", "tensorrt_dispatch")
_classes: dict[str, type] = {}


def _package_of(context: Any) -> str:
    """The TensorRT package that a context comes from; bindings live in packages of their own."""
    root = type(context).__module__.split(".")[0]
    package = root.removesuffix("_bindings")
    return package if package in _PACKAGES else ""


def is_context(target: Any) -> bool:
    """Tell whether an object is an execution context of one of the packages."""
    return bool(_package_of(target)) and hasattr(target, "profiler")


def contexts_in(target: Any) -> list[tuple[str | None, Any, Any]]:
    """Name, context and owner of every execution context inside a module."""
    modules = getattr(target, "named_modules", None)
    if modules is None:
        raise OptionError(
            "target",
            type(target).__name__,
            "an IExecutionContext of tensorrt, or a module with engines in it",
        )
    found: list[tuple[str | None, Any, Any]] = []
    native_engines = []
    for path, module in modules():
        context = getattr(module, "context", None)
        label = str(getattr(module, "name", "") or path or type(module).__name__)
        if context is not None and is_context(context):
            found.append((label, context, module))
        elif hasattr(module, "enable_profiling") and hasattr(module, "engine"):
            native_engines.append(label)
    if not found:
        if native_engines:
            raise OptionError(
                "target",
                type(target).__name__,
                f"a module whose contexts Python can see; {', '.join(native_engines)} run in "
                "Torch-TensorRT's C++ runtime: switch them on with "
                "torch.ops.tensorrt.set_profile_execution(True) or their own enable_profiling(), and load "
                "the files with torchtrt_viz.load()",
            )
        raise OptionError(
            "target", type(target).__name__, "a module with TensorRT engines in it; it has none"
        )
    return found


def layer_profiler(context: Any, times: Any) -> Any:
    """Return an ``IProfiler`` of the context's package whose callback is the native recorder ``times``."""
    package = _package_of(context)
    if package not in _classes:
        base: Any = import_module(package).IProfiler

        def begin(self: Any, times: Any) -> None:
            base.__init__(self)
            self._times = times
            # the bindings look the override up on the object: calls reach the recorder without Python code
            self.report_layer_time = times.record

        def report_layer_time(self: Any, layer_name: str, ms: float) -> None:
            self._times.record(layer_name, ms)

        _classes[package] = type(
            "LayerProfiler", (base,), {"__init__": begin, "report_layer_time": report_layer_time}
        )
    return _classes[package](times)


def layer_information(engine: Any, context: Any) -> str | None:
    """What the engine's inspector says of its layers, as JSON; None where it cannot."""
    if engine is None or not hasattr(engine, "create_engine_inspector"):
        return None
    package = import_module(_package_of(context))
    inspector = engine.create_engine_inspector()
    if inspector is None:
        return None
    # with the context, dynamic dimensions are shown as they are set
    inspector.execution_context = context
    text = inspector.get_engine_information(package.LayerInformationFormat.JSON)
    return text or None


def build_log(package: Any) -> Any:
    """Return a logger for ``package.Builder`` that keeps what a build says of the engine's layers.

    It works where no engine can be deserialized, such as on a machine without a GPU. Give the builder's
    configuration ``profiling_verbosity = ProfilingVerbosity.DETAILED``, build, and call ``save(path)``: the
    file is one that ``torchtrt_viz.load`` reads as layer information.

    Parameters
    ----------
    package
        The module: ``tensorrt`` or ``tensorrt_rtx``.

    Raises
    ------
    OptionError
        When it is no TensorRT package.
    """
    if not hasattr(package, "ILogger"):
        raise OptionError(
            "package", getattr(package, "__name__", package), "the module tensorrt or tensorrt_rtx"
        )
    base: Any = package.ILogger

    class BuildLog(base):  # type: ignore[misc]  # a class of the package at hand
        def __init__(self) -> None:
            base.__init__(self)
            self.layer_information: str | None = None
            self.errors: list[str] = []

        def log(self, severity: Any, message: str) -> None:
            if severity in (package.ILogger.ERROR, package.ILogger.INTERNAL_ERROR):
                self.errors.append(message)
            elif message.startswith("Layers:"):
                self.layer_information = message

        def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
            if self.layer_information is None:
                raise CaptureError(
                    "the build said nothing of its layers: build with profiling_verbosity DETAILED"
                    + (f" (it failed: {self.errors[0]})" if self.errors else "")
                )
            target = Path(fspath(path))
            write_file(target, self.layer_information.encode(), force=force)
            return target

    return BuildLog()
