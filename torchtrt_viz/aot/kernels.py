"""Which operators the host engine can run: kernels of the executorch runtime, and what XNNPACK takes."""

from __future__ import annotations

import logging
import operator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

__all__ = ["describe", "host_kernels", "kernel_of", "operator_name", "xnnpack_groups"]


@cache
def host_kernels() -> frozenset[str]:
    """Names of the kernels of the installed runtime, ``aten::add.out``."""
    from executorch.extension.pybindings import portable_lib

    return frozenset(portable_lib._get_operator_names())


def _overload(target: Any) -> Any:
    """Return the operator behind a target, edge dialect or not; None for Python functions."""
    import torch

    if isinstance(target, torch._ops.OpOverload):
        return target
    inner = getattr(target, "_op", None)
    return inner if isinstance(inner, torch._ops.OpOverload) else None


def operator_name(node: torch.fx.Node) -> str:
    """Operator of a node as ATen writes it, ``aten.add.Tensor``."""
    target: Any = node.target
    overload = _overload(target)
    if overload is None:
        return str(getattr(target, "__name__", target))
    schema = overload._schema
    return f"{schema.name.replace('::', '.')}.{schema.overload_name or 'default'}"


def describe(node: torch.fx.Node) -> str:
    """Name a node for a message: its name, its operator and its module."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values() if path]
    module = f" of module {paths[-1]!r}" if paths else ""
    return f"node {node.name!r} ({operator_name(node)}){module}"


def kernel_of(node: torch.fx.Node) -> str | None:
    """Name of the runtime's kernel that runs a functional node; None when the runtime has none.

    Operators on sizes (``operator.mul`` of two symbolic integers) become ``executorch_prim`` kernels.
    """
    target: Any = node.target
    if target is operator.getitem:
        return "getitem"
    overload = _overload(target)
    if overload is None:
        from executorch.exir.passes.executorch_prim_ops_registry import (
            _PYTHON_SYM_OPS_TO_EXECUTORCH_SYM_OPS,
        )

        replaced = _PYTHON_SYM_OPS_TO_EXECUTORCH_SYM_OPS.get(target)
        if replaced is None:
            return None
        overload = _overload(replaced)
    name = _out_kernel(overload)
    return name if name in host_kernels() else None


def _full_name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


@cache
def _out_kernel(overload: Any) -> str | None:
    """Kernel that executorch's out-variant pass will choose for a functional overload."""
    from executorch.exir.operator.convert import is_out_variant, to_out_variant

    schema = overload._schema
    returned = [str(r.type) for r in schema.returns]
    if not any("Tensor" in kind for kind in returned):
        # a size or a number: the runtime runs it as it is
        return _full_name(schema)
    if is_out_variant(schema.name, schema.overload_name):
        return _full_name(schema)
    try:
        out, _ = to_out_variant(overload)
    except (RuntimeError, AssertionError, AttributeError):
        # no out variant, or a schema that torchgen cannot read: the runtime cannot have a kernel for it
        return None
    return _full_name(out._schema)


def xnnpack_groups(program: ExportedProgram) -> list[list[torch.fx.Node]]:
    """Groups of nodes that XNNPACK takes: an operator each, with its own quantise and constant nodes."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    # reasons for a refusal are logged for people who write partitioner configs, as warnings
    chatty = logging.getLogger("executorch.backends.xnnpack.partition.config")
    level = chatty.level
    chatty.setLevel(logging.ERROR)
    try:
        groups: list[list[torch.fx.Node]] = XnnpackPartitioner().get_matched_nodes_from_configs(program)
    finally:
        chatty.setLevel(level)
    return groups
