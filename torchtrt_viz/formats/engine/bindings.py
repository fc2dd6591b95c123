"""Tensors at an engine's border: listed by the file, or the ones that no layer of it makes or reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtrt_viz.formats.engine.info import BINDINGS, Tensor
from torchtrt_viz.formats.engine.tensor_types import dtype_of, shape_text, tensor_bytes
from torchtrt_viz.formats.io.json_values import text

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.formats.engine.trex_graph import Graph

__all__ = ["bindings_frame"]


def bindings_frame(graph: Graph | None, layers: pd.DataFrame) -> pd.DataFrame:
    """Return the bindings of a graph with the columns of `engine_info.BINDINGS`.

    TensorRT 11 lists them in full; earlier versions give names, whose type and shape come from the layers
    that read or write them; TensorRT 8.2 gives none, and the tensors that no layer writes (inputs) or reads
    (outputs) stand in for them.
    """
    listed: list[Any] = [] if graph is None else graph.bindings
    wanted = {item for item in listed if isinstance(item, str)}
    read: dict[str, Tensor] = {}
    written: dict[str, Tensor] = {}
    for column, table in (("inputs", read), ("outputs", written)):
        for tensors in layers[column]:
            for tensor in tensors:
                if not listed or tensor[0] in wanted:
                    table.setdefault(tensor[0], tensor)
    if listed:
        rows = [_full(b) if isinstance(b, dict) else _named(b, read, written) for b in listed]
    else:
        rows = [_of_tensor(t, "input") for name, t in read.items() if name not in written]
        rows += [_of_tensor(t, "output") for name, t in written.items() if name not in read]
    return BINDINGS.frame({name: [row.get(name) for row in rows] for name in BINDINGS.names}, len(rows))


def _of_tensor(tensor: Tensor, direction: str | None) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "direction": direction,
        "dtype": tensor.dtype,
        "shape": shape_text(tensor.shape),
        "bytes": tensor.bytes,
        "format": tensor.format,
        "location": tensor.location,
    }


def _named(name: str, read: dict[str, Tensor], written: dict[str, Tensor]) -> dict[str, Any]:
    tensor = written.get(name) or read.get(name)
    if tensor is None:
        return {"name": name}
    return _of_tensor(tensor, "output" if name in written else "input")


def _full(item: dict[str, Any]) -> dict[str, Any]:
    """Read an entry of ``I/O Tensors`` (TensorRT 11)."""
    described = item.get("DataType", item.get("Datatype"))
    dtype = dtype_of(described) if isinstance(described, str) else None
    shape = _shape(item.get("Dimensions"))
    mode = str(item.get("IOMode", "")).lower()
    profiles = item.get("ProfileInfo")
    first = profiles[0] if isinstance(profiles, list) and profiles and isinstance(profiles[0], dict) else {}
    return {
        "name": str(item.get("Name", "")),
        "direction": mode if mode in ("input", "output") else None,
        "dtype": dtype,
        "shape": shape_text(shape),
        "bytes": tensor_bytes(shape, dtype),
        "format": text(item.get("Format", first.get("Format"))),
        "location": text(item.get("Location")),
        "min_shape": shape_text(_shape(first.get("MinShape"))),
        "opt_shape": shape_text(_shape(first.get("OptShape"))),
        "max_shape": shape_text(_shape(first.get("MaxShape"))),
    }


def _shape(value: object) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(type(size) is int for size in value):
        return tuple(value)
    return None
