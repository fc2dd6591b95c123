"""Which parts of a graph become regions of the ``TensorRTBackend`` delegate."""

from __future__ import annotations

import fnmatch
import operator
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data

from torchtrt_viz.aot.backend import TensorRTBackend
from torchtrt_viz.aot.kernels import kernel_of, operator_name, xnnpack_groups
from torchtrt_viz.aot.specs import ALIAS_META, check_specs, compile_specs
from torchtrt_viz.errors import CaptureError, OptionError

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

__all__ = ["BACKEND_ID", "TensorRTPartitioner"]

#: Name under which the delegate is registered; executorch takes it from the backend class.
BACKEND_ID = "TensorRTBackend"


class TensorRTPartitioner(Partitioner):  # type: ignore[misc]  # executorch is not typed
    """Tag every region that the engine can run.

    A node is taken when XNNPACK takes it, or when the runtime has a kernel for it, unless it is excluded.
    Neighbouring nodes form one region as long as that makes no cycle.

    Parameters
    ----------
    exclude
        What to leave to others, each a pattern or a predicate on ``torch.fx.Node``. A pattern is matched,
        with ``*`` and ``?``, against the operator (``"aten.topk.default"``, ``"aten.topk"``, ``"*pool*"``)
        or, written ``"module:head"``, against the path of the module that the node comes from; all that is
        below that module is meant too.
    min_region_size
        Regions of fewer operators stay with others.
    profile_level, profile_format, profile_path_prefix
        Defaults that the program carries (see the first RFC); an option given at load time wins over them.
    granularity
        How the host engine cuts a region into layers: ``"operator"`` or ``"fused"``
        (:data:`torchtrt_viz.aot.specs.GRANULARITIES`).
    followed_by_xnnpack
        Whether an ``XnnpackPartitioner`` comes after this one: operators that XNNPACK runs whole are then
        kept whole for it where they are excluded here.
    compile_specs
        More compile specs for the delegate.

    Raises
    ------
    OptionError
        For values that cannot be.
    """

    def __init__(
        self,
        *,
        exclude: Sequence[str | Callable[[torch.fx.Node], bool]] = (),
        min_region_size: int = 1,
        profile_level: str | None = None,
        profile_format: str | None = None,
        profile_path_prefix: str | PathLike[str] | None = None,
        granularity: str = "operator",
        followed_by_xnnpack: bool = False,
        compile_specs: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        if isinstance(exclude, str) or callable(exclude):
            exclude = (exclude,)
        for item in exclude:
            if not (callable(item) or (isinstance(item, str) and item.strip())):
                raise OptionError(
                    "exclude", item, "an operator pattern, 'module:<path>', or a predicate on nodes"
                )
        if isinstance(min_region_size, bool) or not isinstance(min_region_size, int) or min_region_size < 1:
            raise OptionError("min_region_size", min_region_size, "a whole number from 1 on")
        self._exclude = tuple(exclude)
        self._min_region_size = min_region_size
        self._options = {
            "level": profile_level,
            "format": profile_format,
            "path_prefix": profile_path_prefix,
            "granularity": granularity,
        }
        self._followed_by_xnnpack = followed_by_xnnpack
        self._more_specs = list(compile_specs)
        check_specs(self._specs(None))

    def _specs(self, region: str | None) -> list[Any]:
        return [*compile_specs(region=region, **self._options), *self._more_specs]  # type: ignore[arg-type]

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[Any], Callable[[torch.fx.Node], bool] | None]:
        """Keep whole what XNNPACK runs whole (linear, hardswish, ...), unless nobody will run it so."""
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        operators, accepts = XnnpackPartitioner().ops_to_not_decompose(ep)

        def keep(node: torch.fx.Node) -> bool:
            if not self._followed_by_xnnpack and self.excluded(node):
                return False
            return accepts is None or bool(accepts(node))

        return operators, keep

    def excluded(self, node: torch.fx.Node) -> bool:
        """Tell whether the user excluded a node."""
        return any(item(node) if callable(item) else _matches(item, node) for item in self._exclude)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes of each region and the constants that only it uses."""
        from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

        _check_backend()
        taken = self._supported(exported_program)
        # a size or number that leaves its region cannot: leave such nodes outside, and cut again
        while True:
            partitions = CapabilityBasedPartitioner(
                exported_program.graph_module, _Taken(taken), allows_single_node_partition=True
            ).propose_partitions()
            leaving = {
                n for p in partitions for n in p.nodes if not _gives_tensors(n) and _leaves(n, p.nodes)
            }
            if not leaving:
                break
            taken -= leaving
        order = {node: place for place, node in enumerate(exported_program.graph.nodes)}
        regions = sorted((list(p.nodes) for p in partitions), key=lambda nodes: min(order[n] for n in nodes))
        tags: dict[str, Any] = {}
        for nodes in regions:
            if sum(_is_operator(node) for node in nodes) < self._min_region_size:
                continue
            if not any(_gives_tensors(node) for node in nodes):
                continue
            tag = f"region_{len(tags):03d}"
            for node in nodes:
                node.meta["delegation_tag"] = tag
            tags[tag] = DelegationSpec(BACKEND_ID, self._specs(tag))
        tag_constant_data(exported_program)
        _mark_aliases(exported_program)
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    def _supported(self, program: ExportedProgram) -> set[torch.fx.Node]:
        nodes = [n for n in program.graph.nodes if n.op == "call_function" and not self.excluded(n)]
        allowed = set(nodes)
        taken = {node for node in nodes if _tensor_sized(node) and kernel_of(node) is not None}
        for group in xnnpack_groups(program):
            calls = [node for node in group if node.op == "call_function"]
            # a quantised operator goes with its quantise nodes or not at all
            if calls and all(node in allowed for node in calls):
                taken.update(calls)
        # parts of a result go where the result is made
        for node in nodes:
            if node.target is operator.getitem and node.args[0] not in taken:
                taken.discard(node)
        return taken


def _check_backend() -> None:
    """Make sure that executorch, which finds backend classes by name, finds ours and only ours."""
    from executorch.exir.backend.backend_details import BackendDetails

    others = [
        c for c in BackendDetails.__subclasses__() if c.__name__ == BACKEND_ID and c is not TensorRTBackend
    ]
    if others:
        raise CaptureError(
            f"{others[0].__module__} defines a backend class {BACKEND_ID} too, and executorch takes classes "
            "by name: export in a process that does not import it"
        )


class _Taken:
    """What CapabilityBasedPartitioner asks: whether a node is supported."""

    def __init__(self, nodes: set[torch.fx.Node]) -> None:
        self._nodes = nodes

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node in self._nodes


def _matches(pattern: str, node: torch.fx.Node) -> bool:
    if pattern.startswith("module:"):
        wanted = pattern[len("module:") :]
        stack = node.meta.get("nn_module_stack") or {}
        paths = {str(path) for path, _ in stack.values()}
        return any(fnmatch.fnmatchcase(path, wanted) for path in paths)
    name = operator_name(node)
    return any(
        fnmatch.fnmatchcase(form, pattern)
        for form in (name, name.rsplit(".", 1)[0], name.split(".", 1)[-1].rsplit(".", 1)[0])
    )


def _is_operator(node: torch.fx.Node) -> bool:
    return node.target is not operator.getitem and _gives_tensors(node)


def _gives_tensors(node: torch.fx.Node) -> bool:
    import torch

    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return any(isinstance(part, torch.Tensor) for part in parts)


def _tensor_sized(node: torch.fx.Node) -> bool:
    """Tell whether the sizes of a node's results are known or bounded before it runs."""
    import torch
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return not any(
        free_unbacked_symbols(part)
        for part in parts
        if isinstance(part, (torch.Tensor, torch.SymInt, torch.SymFloat))
    )


def _leaves(node: torch.fx.Node, region: Iterable[torch.fx.Node]) -> bool:
    inside = set(region)
    return any(user not in inside for user in node.users)


def _mark_aliases(program: ExportedProgram) -> None:
    """Mark results that overwrite an input which nobody else reads: a cache that is updated in place.

    The graph says which results replace a buffer or an input of the user. Where the region alone uses that
    input, its engine may write into the caller's storage; the marks tell the backend which result that is.
    """
    from torch.export.graph_signature import InputKind, OutputKind

    signature = program.graph_signature
    holders = {
        spec.target if spec.kind is InputKind.BUFFER else spec.arg.name: spec.arg.name
        for spec in signature.input_specs
        if spec.kind in (InputKind.BUFFER, InputKind.USER_INPUT) and hasattr(spec.arg, "name")
    }
    by_name = {node.name: node for node in program.graph.nodes}
    for spec in signature.output_specs:
        if spec.kind not in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
            continue
        result, holder = by_name.get(spec.arg.name), by_name.get(holders.get(spec.target, ""))
        if result is None or holder is None:
            continue
        tag = result.meta.get("delegation_tag")
        if tag is not None and all(user.meta.get("delegation_tag") == tag for user in holder.users):
            kind = "kv_cache_update" if spec.kind is OutputKind.BUFFER_MUTATION else "user"
            result.meta[ALIAS_META] = (holder.name, kind)
