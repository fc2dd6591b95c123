"""One call from a torch module to a ``.pte`` whose regions run in the ``TensorRTBackend`` delegate."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.aot.kernels import operator_name
from torchtrt_viz.errors import CaptureError, MissingDependencyError, OptionError
from torchtrt_viz.formats.io.new_file import write_file

if TYPE_CHECKING:
    import pandas as pd
    import torch

__all__ = ["ExportedFile", "Method", "Region", "export_program", "naming", "quiet_imports"]


@dataclass(frozen=True)
class Method:
    """One entry of a program with several methods.

    Attributes
    ----------
    inputs
        Example inputs, positional.
    kwargs
        Example inputs by keyword.
    dynamic_shapes
        As ``torch.export.export`` takes it.
    module
        The module of this method; None: the one given to :func:`export_program`.
    function
        Name of the module's method to export; None: ``forward``.
    """

    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any] | None = None
    dynamic_shapes: Any = None
    module: torch.nn.Module | None = None
    function: str | None = None


@dataclass(frozen=True)
class Region:
    """What runs one part of the exported program.

    Attributes
    ----------
    method
        Method of the program.
    instruction
        Index of its call in the method, the one that events carry; -1 for the operators left to the runtime.
    backend
        Delegate id, or ``"portable"`` for the operators that the runtime runs itself.
    operators
        ATen names of the operators in it, in order.
    """

    method: str
    instruction: int
    backend: str
    operators: tuple[str, ...]


@dataclass(frozen=True)
class ExportedFile:
    """What :func:`export_program` wrote.

    Attributes
    ----------
    path
        The program.
    etrecord
        Its ETRecord, None when none was asked for.
    regions
        What runs where, in the order of the calls.
    """

    path: Path
    etrecord: Path | None
    regions: tuple[Region, ...]

    def table(self) -> pd.DataFrame:
        """Return the regions as a frame.

        Columns: ``method``; ``instruction`` (index of the call in the method, -1: the operators that no
        delegate took); ``backend``; ``count`` (number of operators); ``operators`` (their names).
        """
        import pandas as pd

        rows = [
            (r.method, r.instruction, r.backend, len(r.operators), ", ".join(r.operators))
            for r in self.regions
        ]
        return pd.DataFrame(rows, columns=["method", "instruction", "backend", "count", "operators"])


def export_program(
    module: torch.nn.Module,
    example_inputs: Sequence[Any] | None,
    path: str | PathLike[str],
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    methods: Mapping[str, Method | Sequence[Any]] | None = None,
    exclude: Sequence[str | Callable[[torch.fx.Node], bool]] = (),
    min_region_size: int = 1,
    xnnpack: bool = True,
    granularity: str = "operator",
    profile_level: str | None = None,
    profile_format: str | None = None,
    profile_path_prefix: str | PathLike[str] | None = None,
    etrecord: bool | str | PathLike[str] = True,
    initialize_buffers: bool = True,
    share_mutable_buffers: bool = False,
    strict: bool = False,
) -> ExportedFile:
    """Export a module to an ExecuTorch program with ``TensorRTBackend`` regions.

    Parameters
    ----------
    module
        The network, in the mode (``.eval()``) in which it is to run.
    example_inputs
        Positional inputs, a sequence; None with ``methods``.
    path
        The ``.pte`` to write; it appears when it is whole, or not at all.
    example_kwargs, dynamic_shapes
        As ``torch.export.export`` takes them.
    methods
        Several methods in one program: ``{"prefill": Method(...), "decode": Method(...)}``. A tuple stands
        for its inputs.
    exclude, min_region_size, granularity
        What does not become a region: see :class:`torchtrt_viz.aot.partitioner.TensorRTPartitioner`.
    xnnpack
        Let ExecuTorch's XNNPACK delegate take what is left where it can; otherwise the runtime's kernels do.
    profile_level, profile_format, profile_path_prefix
        Defaults that the program carries; an option given at load time wins over them.
    etrecord
        True writes ``<path stem>.etrecord`` beside the program (operator types, modules and source lines of
        the events); or a path; False writes none. It holds the weights, as executorch makes it.
    initialize_buffers
        Store the present content of buffers that the module changes (a key-value cache), so that a run
        begins as the eager module would. Without it their first content is undefined, and the file smaller.
    share_mutable_buffers
        Let methods share buffers of one name, such as a key-value cache; load the program with
        ``share_memory=True``.
    strict
        As ``torch.export.export`` takes it.

    Returns
    -------
    ExportedFile
        The files, and what runs where.

    Raises
    ------
    CaptureError
        When the module cannot be exported or lowered; the message names the node at fault where there is one.
    OptionError
        For an option that cannot be.
    MissingDependencyError
        Without torch or executorch.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise OptionError("path", str(path), f"a file in an existing folder ({target.parent} is none)")
    chosen = _methods(module, example_inputs, example_kwargs, dynamic_shapes, methods)
    with quiet_imports():
        try:
            import torch
            from executorch.exir import (
                EdgeCompileConfig,
                ExecutorchBackendConfig,
                to_edge_transform_and_lower,
            )
            from executorch.exir.passes import MemoryPlanningPass
        except ImportError as error:
            raise MissingDependencyError(error.name or "executorch", "capture", "export a program") from error
        # slow to import: it needs executorch
        from torchtrt_viz.aot.partitioner import TensorRTPartitioner

    def partitioners() -> list[Any]:
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        ours = TensorRTPartitioner(
            exclude=exclude,
            min_region_size=min_region_size,
            profile_level=profile_level,
            profile_format=profile_format,
            profile_path_prefix=profile_path_prefix,
            granularity=granularity,
            followed_by_xnnpack=xnnpack,
        )
        return [ours, XnnpackPartitioner()] if xnnpack else [ours]

    by_method = {name: partitioners() for name in chosen}
    exported = {}
    for name, method in chosen.items():
        with naming(f"method {name!r} cannot be exported"), torch.no_grad():
            exported[name] = torch.export.export(
                _callable_module(method, name),
                tuple(method.inputs),
                dict(method.kwargs or {}),
                dynamic_shapes=method.dynamic_shapes,
                strict=strict,
            )
    with naming("the program cannot be lowered"):
        manager = to_edge_transform_and_lower(
            exported,
            partitioner=by_method,
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
            generate_etrecord=bool(etrecord),
        )
        # inputs stay the caller's memory: nothing is copied in, and what is updated in place is his
        planning = MemoryPlanningPass(alloc_graph_input=False, share_mutable_buffers=share_mutable_buffers)
        emitted = manager.to_executorch(
            ExecutorchBackendConfig(
                passes=_state_passes(manager) if initialize_buffers else [],
                memory_planning_pass=planning,
                emit_mutable_buffer_names=share_mutable_buffers,
            )
        )
    write_file(target, lambda part: part.write_bytes(emitted.buffer), force=True)
    record = None
    if etrecord:
        record = target.with_suffix(".etrecord") if etrecord is True else Path(etrecord)
        with naming("the ETRecord cannot be written (pass etrecord=False to do without)"):
            made = emitted.get_etrecord()
            write_file(record, lambda part: made.save(str(part)), force=True)
    return ExportedFile(target, record, tuple(_regions(emitted, chosen)))


def _methods(
    module: torch.nn.Module,
    inputs: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    shapes: Any,
    methods: Mapping[str, Method | Sequence[Any]] | None,
) -> dict[str, Method]:
    if methods is None:
        if inputs is None and kwargs is None:
            raise OptionError("example_inputs", None, "a sequence of inputs (or give methods=)")
        methods = {
            "forward": Method(_inputs("example_inputs", () if inputs is None else inputs), kwargs, shapes)
        }
    elif inputs is not None or kwargs is not None or shapes is not None:
        raise OptionError("methods", sorted(methods), "either methods=, or inputs of the one method forward")
    elif not methods:
        raise OptionError("methods", {}, "at least one method")
    chosen = {}
    for name, method in methods.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise OptionError("methods", name, "names that are Python identifiers")
        if not isinstance(method, Method):
            method = Method(_inputs(f"methods[{name!r}]", method))
        chosen[name] = Method(
            method.inputs, method.kwargs, method.dynamic_shapes, method.module or module, method.function
        )
    return chosen


def _inputs(key: str, value: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        raise OptionError(key, type(value).__name__, "a tuple of inputs, (x,) for a single one")
    return tuple(value)


def _callable_module(method: Method, name: str) -> torch.nn.Module:
    """The module whose ``forward`` is the method to export."""
    import torch

    module = method.module
    if not isinstance(module, torch.nn.Module):
        raise OptionError("module", type(module).__name__, "a torch.nn.Module")
    if method.function is None or method.function == "forward":
        return module
    if not callable(getattr(module, method.function, None)):
        raise OptionError(
            f"methods[{name!r}].function", method.function, f"a method of {type(module).__name__}"
        )
    return _forwarding(module, method.function)


def _forwarding(module: torch.nn.Module, function: str) -> torch.nn.Module:
    """Wrap a module so that ``forward`` is another of its methods, with parameters under their own names."""
    import copy

    twin = copy.copy(module)  # shares parameters and submodules
    twin.forward = getattr(type(module), function).__get__(twin)
    return twin


def _state_passes(manager: Any) -> list[Any]:
    """Passes that have the content of mutated buffers stored in the program."""
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    names = []
    for method in sorted(manager.methods):
        signature = manager.exported_program(method).graph_signature
        mutated = set(signature.buffers_to_mutate.values())
        names += [holder for holder, target in signature.inputs_to_buffers.items() if target in mutated]
    return [InitializedMutableBufferPass(names)] if names else []


def _regions(emitted: Any, chosen: Mapping[str, Method]) -> Iterator[Region]:
    """Read from the emitted graphs what runs where."""
    from executorch.exir.delegate import executorch_call_delegate

    for name in chosen:
        program = emitted.exported_program(name)
        left = []
        for node in program.graph.nodes:
            if node.op != "call_function":
                continue
            if node.target is executorch_call_delegate:
                lowered = getattr(program.graph_module, node.args[0].target)
                inside = [n for n in lowered.original_module.graph.nodes if n.op == "call_function"]
                operators = tuple(operator_name(n) for n in inside if hasattr(n.target, "_schema"))
                yield Region(name, int(node.meta.get("debug_handle", -1)), lowered.backend_id, operators)
            elif hasattr(node.target, "_schema"):
                left.append(operator_name(node))
        if left:
            yield Region(name, -1, "portable", tuple(left))


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Turn what torch and executorch raise into our error, with the cause kept."""
    try:
        with warnings.catch_warnings():
            # torch's and executorch's own deprecations: nothing that a user of this package can act on
            for category in (FutureWarning, DeprecationWarning):
                warnings.simplefilter("ignore", category)
            warnings.filterwarnings("ignore", message="Mutation on a buffer in the model is detected")
            yield
    except (CaptureError, OptionError):
        raise
    except Exception as error:
        first = str(error).strip().split("\n\n")[0] or type(error).__name__
        raise CaptureError(f"{what}: {first}") from error


@contextmanager
def quiet_imports() -> Iterator[None]:
    """Keep what executorch's dependencies log about themselves while they are imported off the screen."""
    loggers = [logging.getLogger(name) for name in ("torchao", "torch.utils._pytree", "root")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
