"""The ahead-of-time side of the delegate: a region becomes a blob, its events lead back to nodes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, final

from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.utils import DelegateMappingBuilder

from torchtrt_viz.aot.lowering import HostProgram, lower_region
from torchtrt_viz.aot.specs import ALIAS_META, GRANULARITY_KEY, REGION_KEY, check_specs
from torchtrt_viz.formats.engine.blob import host_payload, pack_blob

if TYPE_CHECKING:
    from executorch.exir.backend.compile_spec_schema import CompileSpec
    from torch.export import ExportedProgram

__all__ = ["DELEGATE_EVENTS", "TensorRTBackend"]

#: The events of a delegate's call, as the first RFC names them.
DELEGATE_EVENTS: tuple[str, ...] = (
    "torchtrt.delegate",
    "torchtrt.input_binding",
    "torchtrt.shape_inference",
    "torchtrt.output_binding",
    "torchtrt.enqueue_host",
    "torchtrt.output_staging",
    "torchtrt.synchronize",
)


@final
class TensorRTBackend(BackendDetails):  # type: ignore[misc]  # executorch is not typed
    """Turn a region into the blob that the ``TensorRTBackend`` delegate runs.

    The class's name is the delegate's id in the program, and the name that the native side registers.
    """

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Lower one region for the host engine.

        Returns
        -------
        PreprocessResult
            The TR01 (or, where outputs alias inputs, TR02) blob, and the map from the id of every event that
            can be emitted for the region to the debug handles of the nodes behind it. Ids without any
            recorded handle are left out.

        Raises
        ------
        CaptureError
            For a node that the engine cannot run; it is named.
        OptionError
            For a compile spec that cannot be.
        """
        options = check_specs(compile_specs)
        host = lower_region(edge_program, options.get(GRANULARITY_KEY, "operator"))
        blob = pack_blob(
            host_payload(host.program),
            io_bindings=_bindings(edge_program),
            aliased_io=_aliases(edge_program),
            extra={
                "torchtrt_viz": {
                    "version": 1,
                    "engine_runtime": "host",
                    "engine_name": options.get(REGION_KEY, "region"),
                    "program_crc32": zlib.crc32(host.program),
                    "stateful": bool(edge_program.graph_signature.buffers_to_mutate),
                    "layers": _layer_table(host),
                }
            },
        )
        return PreprocessResult(processed_bytes=blob, debug_handle_map=_event_map(edge_program, host))


def _event_map(region: ExportedProgram, host: HostProgram) -> dict[str, tuple[int, ...]]:
    builder = DelegateMappingBuilder(generated_identifiers=False)
    nodes = [node for node in region.graph.nodes if node.op == "call_function"]
    if any(node.meta.get("debug_handle") is not None for node in nodes):
        for event in DELEGATE_EVENTS:
            builder.insert_delegate_mapping_entry(nodes=nodes, identifier=event)
    for layer in host.layers:
        if not layer.handles:
            continue
        # which of several operators that an XNNPACK call reports is which node, nothing records
        unknown = set(layer.part_ids)
        for identifier in layer.ids:
            if identifier not in unknown:
                builder.insert_delegate_mapping_entry(handles=list(layer.handles), identifier=identifier)
    mapping: dict[str, tuple[int, ...]] = builder.get_delegate_mapping()
    return mapping


def _layer_table(host: HostProgram) -> list[dict[str, Any]]:
    """What is known ahead of time of each layer; parts of an XNNPACK call XNNPACK names itself."""
    table: list[dict[str, Any]] = []
    for layer in host.layers:
        owner = {"module": layer.module, "nodes": [node.name for node in layer.nodes]}
        if not layer.delegated:
            table += [
                {"id": identifier, "name": layer.name, "op": layer.op, **owner} for identifier in layer.ids
            ]
            continue
        if not layer.whole:
            rest = f"{layer.name}, outside its operators"
            table.append({"id": layer.ids[-2], "name": rest, "op": "rest", **owner})
        table.append({"id": layer.ids[-1], "name": layer.name, "op": layer.op, "whole": layer.whole, **owner})
    return table


def _bindings(region: ExportedProgram) -> list[dict[str, Any]]:
    import torch

    by_name = {node.name: node for node in region.graph.nodes}
    rows = []
    signature = region.graph_signature
    for names, is_input in ((signature.user_inputs, True), (signature.user_outputs, False)):
        for name in names:
            value = by_name[name].meta.get("val") if isinstance(name, str) and name in by_name else None
            if isinstance(value, torch.Tensor):
                dtype = str(value.dtype).removeprefix("torch.")
                shape = [size if isinstance(size, int) else -1 for size in value.shape]
            else:
                dtype, shape = ("float64" if isinstance(value, (float, torch.SymFloat)) else "int64"), []
            rows.append({"name": str(name), "dtype": dtype, "shape": shape, "is_input": is_input})
    return rows


def _aliases(region: ExportedProgram) -> list[dict[str, Any]]:
    by_name = {node.name: node for node in region.graph.nodes}
    inputs = list(region.graph_signature.user_inputs)
    found = []
    for position, name in enumerate(region.graph_signature.user_outputs):
        mark = by_name[name].meta.get(ALIAS_META) if isinstance(name, str) and name in by_name else None
        if mark is not None and mark[0] in inputs:
            found.append({"output": position, "input": inputs.index(mark[0]), "kind": mark[1]})
    return found
