"""From a region of the graph to what the host engine runs: an inner ExecuTorch program and its layers.

Every node of the region gets a handle of its own before the inner program is made. The emitter carries
handles through all passes and says for each instruction which ones it stands for, so the way from a layer
back to the nodes is recorded and never guessed from names.
"""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

from torchtrt_viz.aot.kernels import describe, host_kernels, kernel_of, operator_name, xnnpack_groups
from torchtrt_viz.errors import CaptureError

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

__all__ = ["HostProgram", "Layer", "lower_region"]

# handles of the region's nodes in the inner program: far from the small numbers that passes make up
_FIRST_HANDLE = 1 << 24


@dataclass(frozen=True)
class Layer:
    """One instruction of the inner program.

    Attributes
    ----------
    index
        Its place among the method's instructions.
    op
        Kernel (``"add.out"``), or ``"XnnpackBackend"`` for a call into XNNPACK.
    nodes
        The region's nodes that it runs, in graph order; empty where nothing is recorded.
    handles
        Their debug handles in the outer program.
    groups
        How many operators, counted without what XNNPACK folds into one, a call into XNNPACK runs. Which of
        several is behind one of the times that XNNPACK reports, nothing records.
    """

    index: int
    op: str
    nodes: tuple[torch.fx.Node, ...] = ()
    handles: tuple[int, ...] = ()
    groups: int = 1

    @property
    def delegated(self) -> bool:
        """Whether XNNPACK runs it."""
        return self.op == "XnnpackBackend"

    @property
    def whole(self) -> bool:
        """Whether it is one operator of the graph: the engine reports it as one layer, with its own time.

        A call into XNNPACK with several operators is reported by its parts, in XNNPACK's whole microseconds.
        """
        return not self.delegated or self.groups <= 1

    @property
    def ids(self) -> list[str]:
        """Every event id that the host engine can emit for it (``capture_ext/core/blob.hpp``).

        Of a call that is reported by its parts, the ids go up to a bound of what XNNPACK can make of so many
        nodes (each may be wrapped in changes of layout or type).
        """
        place = f"layer_{self.index:04d}"
        if not self.delegated:
            return [f"{place}_{self.op}", f"{place}_op"]
        return [*self.part_ids, *([] if self.whole else [f"{place}_rest"]), f"{place}_delegate"]

    @property
    def part_ids(self) -> list[str]:
        """Those of the ids that stand for operators inside a call into XNNPACK."""
        if self.whole:
            return []
        calls = sum(node.target is not operator.getitem for node in self.nodes)
        return [f"layer_{self.index:04d}_{k:03d}" for k in range(min(1000, 2 * calls + 4))]

    @property
    def name(self) -> str:
        """Name in the manner of Torch-TensorRT: ``[KIND]-[aten_ops.op]-[/module/op]``, joined by `` + ``."""
        parts = [_layer_part(node) for node in self.nodes if node.target is not operator.getitem]
        return " + ".join(parts) or f"[{self.op}]"

    @property
    def module(self) -> str:
        """Path of the innermost module that all its nodes belong to; empty: the root, or not recorded."""
        paths = [_module_path(node).split(".") for node in self.nodes]
        if not paths:
            return ""
        common = []
        for level in zip(*paths, strict=False):
            if len(set(level)) != 1:
                break
            common.append(level[0])
        return ".".join(common)


@dataclass(frozen=True)
class HostProgram:
    """The inner program of a region and what is known of its layers."""

    program: bytes
    layers: tuple[Layer, ...]


class _OperatorPartitioner(XnnpackPartitioner):  # type: ignore[misc]  # executorch is not typed
    """One XNNPACK call per operator, with what XNNPACK fuses into it (batch norm, activation)."""

    def generate_partitions(self, ep: ExportedProgram) -> list[Any]:
        from torch.fx.passes.infra.partitioner import Partition

        groups = [group for group in xnnpack_groups(ep) if not all(_is_view(node) for node in group)]
        return [Partition(id=place, nodes=dict.fromkeys(group)) for place, group in enumerate(_fuse(groups))]


def lower_region(region: ExportedProgram, granularity: str = "operator") -> HostProgram:
    """Lower a region to an inner program for XNNPACK and the runtime's CPU kernels.

    Parameters
    ----------
    region
        Edge program of the region, as ``preprocess()`` gets it; it is not changed.
    granularity
        ``"operator"`` or ``"fused"`` (:data:`torchtrt_viz.aot.specs.GRANULARITIES`).

    Raises
    ------
    CaptureError
        When the host engine cannot run a node; the message names it.
    """
    from executorch.exir import EdgeCompileConfig, EdgeProgramManager, ExecutorchBackendConfig
    from executorch.exir.backend.backend_api import to_backend
    from executorch.exir.passes import MemoryPlanningPass

    inner = copy.deepcopy(region)
    originals = [n for n in region.graph.nodes if n.op == "call_function"]
    by_handle = {}
    for handle, (node, twin) in enumerate(
        zip(originals, (n for n in inner.graph.nodes if n.op == "call_function"), strict=True), _FIRST_HANDLE
    ):
        by_handle[handle] = node
        twin.meta["debug_handle"] = handle
    for node in inner.graph.nodes:
        # the outer partition's tags would be taken for the inner one's
        node.meta.pop("delegation_tag", None)
    group_of = {}
    for place, group in enumerate(_fuse(xnnpack_groups(inner))):
        for node in group:
            group_of[node.meta.get("debug_handle")] = place
    partitioner = XnnpackPartitioner() if granularity == "fused" else _OperatorPartitioner()
    lowered = to_backend(inner, partitioner)
    _check(lowered)
    manager = EdgeProgramManager(
        {"forward": lowered}, compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    emitted = manager.to_executorch(
        # inputs and outputs are the delegate's own arguments: nothing is copied in or out
        ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
        )
    )
    return HostProgram(bytes(emitted.buffer), tuple(_layers(emitted, by_handle, group_of)))


def _check(program: ExportedProgram) -> None:
    """Refuse a node that would only fail when the program is loaded."""
    from executorch.exir.delegate import executorch_call_delegate

    for node in program.graph.nodes:
        if node.op != "call_function" or node.target is executorch_call_delegate:
            continue
        if kernel_of(node) is None:
            raise CaptureError(
                f"the host engine has no kernel for {describe(node)}: exclude it from the region, with "
                f"exclude=[{operator_name(node)!r}], so that another backend or a custom kernel runs it "
                f"(the runtime has {len(host_kernels())} kernels)"
            )


def _layers(emitted: Any, by_handle: dict[int, torch.fx.Node], group_of: dict[Any, int]) -> list[Layer]:
    plan = next(p for p in emitted.executorch_program.execution_plan if p.name == "forward")
    handles: dict[int, Any] = emitted.debug_handle_map.get("forward", {})
    order = {node: place for place, node in enumerate(by_handle.values())}
    layers = []
    for index, instruction in enumerate(plan.chains[0].instructions):
        call = instruction.instr_args
        if hasattr(call, "op_index"):
            kernel = plan.operators[call.op_index]
            op = kernel.name.split("::", 1)[-1] + (f".{kernel.overload}" if kernel.overload else "")
        elif hasattr(call, "delegate_index"):
            op = plan.delegates[call.delegate_index].id
        else:
            # jumps, moves and frees: the runtime reports no operator for them
            continue
        found = handles.get(index, ())
        found = [found] if isinstance(found, int) else found
        known = [h for h in found if h in by_handle]
        nodes = sorted({by_handle[h] for h in known}, key=order.__getitem__)
        outer = {h for node in nodes for h in _handles(node)}
        groups = len({group_of[h] for h in known if h in group_of})
        layers.append(Layer(index, op, tuple(nodes), tuple(sorted(outer)), groups))
    return layers


def _handles(node: torch.fx.Node) -> list[int]:
    handle = node.meta.get("debug_handle")
    if handle is None:
        return []
    return list(handle) if isinstance(handle, (tuple, list)) else [handle]


def _module_path(node: torch.fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    paths = [str(path) for path, _ in stack.values()]
    return paths[-1].removeprefix("L['self'].") if paths else ""


def _layer_part(node: torch.fx.Node) -> str:
    op = operator_name(node)
    short = op.split(".")[-2] if op.count(".") >= 2 else op
    path = _module_path(node).replace(".", "/")
    where = f"/{path}/{short}" if path else f"/{short}"
    return f"[{short.strip('_').upper()}]-[{op.replace('aten.', 'aten_ops.', 1)}]-[{where}]"


def _is_view(node: torch.fx.Node) -> bool:
    """Changes of shape that keep the order of elements: executorch makes them views, which cost nothing."""
    if node.op != "call_function":
        return True
    return operator_name(node) in ("aten.view_copy.default", "aten.unsqueeze_copy.default")


# what XNNPACK folds into the operator before it
_FOLDED = ("aten.relu.default", "aten.hardtanh.default", "aten._native_batch_norm_legit_no_training.default")
_FOLDERS = (
    "aten.convolution.default",
    "aten.linear.default",
    "aten.add.Tensor",
    "aten.sub.Tensor",
    "aten.mul.Tensor",
    "aten._native_batch_norm_legit_no_training.default",
)


def _fuse(groups: list[list[torch.fx.Node]]) -> list[list[torch.fx.Node]]:
    """Join a group that is folded into its only producer with the producer's group.

    The producer's result has no other user, so joining the two cannot make a cycle.
    """
    owner: dict[torch.fx.Node, int] = {}
    for place, group in enumerate(groups):
        for node in group:
            owner[node] = place
    joined: dict[int, int] = {}

    def root(place: int) -> int:
        while place in joined:
            place = joined[place]
        return place

    for place, group in enumerate(groups):
        calls = [n for n in group if n.op == "call_function" and n.target is not operator.getitem]
        if len(calls) != 1 or operator_name(calls[0]) not in _FOLDED:
            continue
        producer = calls[0].args[0]
        chain = [producer]
        if getattr(producer, "target", None) is operator.getitem:
            producer = producer.args[0]
            chain.append(producer)
        if producer not in owner or operator_name(producer) not in _FOLDERS:
            continue
        if operator_name(calls[0]) == "aten._native_batch_norm_legit_no_training.default" and (
            operator_name(producer) not in _FOLDERS[:2]
        ):
            continue
        # all results of the producer go to the folded operator alone
        if all(len(link.users) == 1 for link in chain) and root(owner[producer]) != root(place):
            joined[root(place)] = root(owner[producer])
    merged: dict[int, list[torch.fx.Node]] = {}
    for place, group in enumerate(groups):
        members = merged.setdefault(root(place), [])
        members.extend(node for node in group if node not in members)
    return list(merged.values())
