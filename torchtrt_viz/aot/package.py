"""Opaque packages: a module becomes an AOTInductor ``.pt2`` whose regions run behind an operator.

The package's runner gives no way to reach an engine. What the engines record is switched by the process-wide
setting (``torch.ops.tensorrt.set_profile_execution``), or by a capture, before or after the package is
loaded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.aot.kernels import operator_name
from torchtrt_viz.aot.program import naming, quiet_imports
from torchtrt_viz.errors import CaptureError, MissingDependencyError, OptionError
from torchtrt_viz.formats.io.new_file import write_file
from torchtrt_viz.runtime.torch_ops import load_torch_ops

if TYPE_CHECKING:
    import torch

__all__ = ["ExportedPackage", "export_package", "load_package"]

#: By engine name the region's own graph: the operator's fake kernel runs it to know the outputs' sizes.
_regions: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class ExportedPackage:
    """What :func:`export_package` wrote.

    Attributes
    ----------
    path
        The ``.pt2``.
    engines
        Name of each engine, as its trace files carry it, with the ATen operators in it.
    """

    path: Path
    engines: Mapping[str, tuple[str, ...]]


def export_package(
    module: torch.nn.Module,
    example_inputs: Sequence[Any],
    path: str | PathLike[str],
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    exclude: Sequence[str | Callable[[torch.fx.Node], bool]] = (),
    min_region_size: int = 1,
    granularity: str = "operator",
    strict: bool = False,
) -> ExportedPackage:
    """Export a module to an AOTInductor package with engines in it.

    Parameters
    ----------
    module
        The network, in the mode (``.eval()``) in which it is to run.
    example_inputs, example_kwargs, dynamic_shapes, strict
        As ``torch.export.export`` takes them.
    path
        The ``.pt2`` to write. Its stem begins the engines' names.
    exclude, min_region_size, granularity
        What does not become an engine: see :class:`torchtrt_viz.aot.partitioner.TensorRTPartitioner`.
        AOTInductor compiles the rest.

    Raises
    ------
    CaptureError
        When the module cannot be exported, lowered or compiled; also when no operator fits into an engine.
    OptionError
        For an option that cannot be.
    MissingDependencyError
        Without torch or executorch.
    """
    target = Path(path)
    if target.suffix != ".pt2":
        raise OptionError("path", str(path), "a file name that ends in .pt2")
    if not target.parent.is_dir():
        raise OptionError("path", str(path), f"a file in an existing folder ({target.parent} is none)")
    if not isinstance(example_inputs, (tuple, list)):
        raise OptionError("example_inputs", type(example_inputs).__name__, "a tuple of inputs, (x,) for one")
    with quiet_imports():
        try:
            import torch
            from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
        except ImportError as error:
            raise MissingDependencyError(error.name or "executorch", "capture", "export a package") from error
        # slow to import: it needs executorch
        from torchtrt_viz.aot.partitioner import TensorRTPartitioner

    _define_fake()
    inputs, keywords = tuple(example_inputs), dict(example_kwargs or {})
    partitioner = TensorRTPartitioner(
        exclude=exclude, min_region_size=min_region_size, granularity=granularity
    )
    with naming("the module cannot be exported"), torch.no_grad():
        exported = torch.export.export(module, inputs, keywords, dynamic_shapes=dynamic_shapes, strict=strict)
    with naming("the module cannot be lowered"):
        lowered = to_edge_transform_and_lower(
            exported,
            partitioner=[partitioner],
            compile_config=EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True),
        ).exported_program()
        engines = _replace_delegates(lowered, target.stem)
    if not engines:
        raise CaptureError(
            "no operator of the module fits into an engine: an opaque package without engines is an ordinary "
            "AOTInductor package (check exclude and min_region_size)"
        )
    try:
        with naming("the package cannot be compiled"), torch.no_grad():
            around = torch.export.export(
                lowered.module(), inputs, keywords, dynamic_shapes=dynamic_shapes, strict=False
            )

            def compile_to(part: Path) -> None:
                # AOTInductor insists on the suffix
                made = torch._inductor.aoti_compile_and_package(
                    around, package_path=str(part.with_name(part.name + ".pt2"))
                )
                Path(made).replace(part)

            write_file(target, compile_to, force=True)
    finally:
        for name in engines:
            _regions.pop(name, None)
    return ExportedPackage(target, engines)


def load_package(path: str | PathLike[str]) -> Any:
    """Load a package with engines; return its runner, which is called like the module.

    The same as ``torch._inductor.aoti_load_package`` after ``load_torch_ops()``.

    Raises
    ------
    CaptureError
        When the file is not there or cannot be loaded.
    """
    target = Path(path)
    if not target.is_file():
        raise CaptureError(f"{target} does not exist: give the .pt2 file that export_package() wrote")
    load_torch_ops()
    import torch

    try:
        return torch._inductor.aoti_load_package(str(target))
    except (RuntimeError, OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise CaptureError(f"{target} cannot be loaded as an AOTInductor package: {first}") from error


def _define_fake() -> None:
    """Tell torch the sizes of the operator's outputs, for tracing: those of the region's own graph."""
    load_torch_ops()
    if _defined:
        return
    import torch

    def outputs(inputs: list[torch.Tensor], engine: torch.Tensor, name: str) -> list[torch.Tensor]:
        if name not in _regions:
            raise CaptureError(f"engine {name!r} is traced outside of export_package()")
        return [
            torch.empty_like(value, memory_format=torch.contiguous_format)
            for value in _regions[name](*inputs)
        ]

    torch.library.register_fake("torchtrt_viz::execute_engine", outputs)
    _defined.append(True)


_defined: list[bool] = []


def _replace_delegates(program: Any, stem: str) -> dict[str, tuple[str, ...]]:
    """Put the operator in the place of each delegate call, and ATen operators in the place of edge ones."""
    import torch
    from executorch.exir.delegate import executorch_call_delegate

    graph = program.graph
    root = program.graph_module
    engines: dict[str, tuple[str, ...]] = {}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is not executorch_call_delegate:
            inner = getattr(node.target, "_op", None)
            if isinstance(inner, torch._ops.OpOverload) and not isinstance(
                node.target, torch._ops.OpOverload
            ):
                node.target = inner
            continue
        holder = node.args[0]
        lowered = getattr(root, holder.target)
        name = f"{stem}_{len(engines):03d}"
        inside = [n for n in lowered.original_module.graph.nodes if n.op == "call_function"]
        engines[name] = tuple(operator_name(n) for n in inside if n.target is not operator.getitem)
        _regions[name] = _region_of(lowered.original_module)
        blob = torch.frombuffer(bytearray(lowered.processed_bytes), dtype=torch.uint8)
        constant = f"engine_{len(engines) - 1:03d}"
        program.graph_module.register_buffer(constant, blob)
        with graph.inserting_before(node):
            engine = graph.get_attr(constant)
            engine.meta["val"] = blob
            values = [_as_tensor(graph, value) for value in node.args[1:]]
            call = graph.call_function(torch.ops.torchtrt_viz.execute_engine.default, (values, engine, name))
        call.meta = dict(node.meta)
        node.replace_all_uses_with(call)
        graph.erase_node(node)
        if not holder.users:
            graph.erase_node(holder)
    graph.lint()
    root.recompile()
    return engines


def _as_tensor(graph: Any, value: Any) -> Any:
    """An argument of a region as a tensor: sizes become tensors of no dimension."""
    import torch

    found = value.meta.get("val") if hasattr(value, "meta") else value
    if isinstance(found, torch.Tensor):
        return value
    kind = torch.float64 if isinstance(found, (float, torch.SymFloat)) else torch.int64
    made = graph.call_function(torch.ops.aten.scalar_tensor.default, (value,), {"dtype": kind})
    return made


def _region_of(program: Any) -> Callable[..., Any]:
    module = program.module()

    def run(*inputs: Any) -> list[Any]:
        outputs = module(*inputs)
        return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]

    return run
