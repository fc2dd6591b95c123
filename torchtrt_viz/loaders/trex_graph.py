"""Layer information: what ``trtexec --exportLayerInfo`` and the engine inspector write, TensorRT 8.2 to 11.

The document is ``{"Layers": [...], "Bindings": [...]}``; TensorRT 11 has ``"I/O Tensors"`` in place of the
bindings. A layer is an object when the engine was built with ``profilingVerbosity=detailed``, a bare name
with ``layer_names_only``, and absent with ``none``. Merged files are plain lists; a single layer may stand
alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.loaders.engine_info import Tensor
from torchtrt_viz.loaders.layer_names import LayerName, common_path, onnx_layers, parent_path, parse_name
from torchtrt_viz.loaders.layer_notes import explain, role_of
from torchtrt_viz.loaders.options import LoadOptions
from torchtrt_viz.loaders.tensor_types import dtype_of, shape_text, tensor_bytes
from torchtrt_viz.trace import Repair

__all__ = ["Graph", "layer_columns", "read_graph"]

_OWN_COLUMNS = frozenset(("Name", "LayerType", "Inputs", "Outputs", "TacticName", "TacticValue", "StreamId"))
_PROFILE = re.compile(r"\[profile (\d{1,9})\]")


@dataclass
class Graph:
    """A layer information document in one shape.

    ``layers`` holds mappings (detailed) and names; ``bindings`` names (up to TensorRT 10) or mappings
    (TensorRT 11).
    """

    layers: list[Any]
    bindings: list[Any]
    verbosity: str
    header: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = [layer if isinstance(layer, str) else layer["Name"] for layer in self.layers]


def read_graph(value: Any, name: str, options: LoadOptions) -> Graph:
    """Bring a parsed document into one shape.

    Raises
    ------
    TraceFormatError
        When it is no layer information.
    """
    header: dict[str, Any] = {}
    bindings: Any = []
    if isinstance(value, dict) and "Layers" in value:
        layers = value["Layers"]
        bindings = value.get("I/O Tensors") or value.get("Bindings") or []
        header = {k: v for k, v in value.items() if k not in ("Layers", "Bindings", "I/O Tensors")}
    elif isinstance(value, dict) and ("LayerType" in value or "Name" in value):
        layers = [value]
    elif isinstance(value, dict) and ("Bindings" in value or "I/O Tensors" in value):
        layers, bindings = [], value.get("I/O Tensors") or value.get("Bindings") or []
    elif isinstance(value, list):
        layers = []
        for item in value:
            if isinstance(item, dict) and isinstance(item.get("Layers"), list):
                layers.extend(item["Layers"])
                bindings = bindings or item.get("I/O Tensors") or item.get("Bindings") or []
            else:
                layers.append(item)
    else:
        raise _no_graph(name, value)
    if not isinstance(layers, list):
        raise _no_graph(name, layers)
    good = [named for item in layers if (named := _layer(item)) is not None]
    if len(good) < len(layers):
        options.repaired(
            Repair(
                "not_a_layer", "entries that are no layers were left out", name, count=len(layers) - len(good)
            )
        )
    if not isinstance(bindings, list):
        bindings = []
    detailed = any(isinstance(layer, dict) for layer in good)
    recorded = header.get("ProfilingVerbosity")
    verbosity = "detailed" if detailed else "layer_names_only" if good else "none"
    if isinstance(recorded, str) and not good:
        verbosity = recorded.lower()
    return Graph(good, [b for b in bindings if isinstance(b, (str, dict))], verbosity, header)


def _layer(item: Any) -> Any:
    """Return a layer as a mapping with a textual Name, or a name; None for anything else."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        named = item.get("Name")
        if isinstance(named, str):
            return item
        if named is not None or item:
            return {**item, "Name": "" if named is None else str(named)}
    return None


def _no_graph(name: str, found: Any) -> TraceFormatError:
    return TraceFormatError(
        "no layer information in it",
        path=name,
        expected='{"Layers": [...]}, a list of layers, or one layer',
        found=type(found).__name__,
        hint="Write it with trtexec --exportLayerInfo=FILE --profilingVerbosity=detailed",
    )


def layer_columns(graph: Graph) -> dict[str, list[Any]]:
    """Return what the document says of each layer, one list per column of `engine_info.LAYERS`.

    The layers' mappings are used up: what has no column of its own stays in them, as the attributes.
    """
    layers: list[dict[str, Any]] = [{} if isinstance(layer, str) else layer for layer in graph.layers]
    names = graph.names
    parsed = [parse_name(name) for name in names]
    types = _texts([layer.get("LayerType") for layer in layers])
    roles = [role_of(t, name, text) for t, name, text in zip(types, parsed, names, strict=True)]
    tensors = _TensorTable()
    inputs = [tensors.read(layer.get("Inputs")) for layer in layers]
    outputs = [tensors.read(layer.get("Outputs")) for layer in layers]
    weights = _Weights()
    held = [weights.read(layer) for layer in layers]
    recorded = [
        _recorded(metadata, name) if metadata else (name.module, name.operators)
        for metadata, name in zip(map(_metadata, layers), parsed, strict=True)
    ]
    columns: dict[str, list[Any]] = {
        "name": list(names),
        "layer": list(range(len(names))),
        "type": types,
        "role": roles,
        "profile": _profiles(names, parsed, inputs, outputs),
        "precision": [
            own[0] or (side.tensors[0].dtype if side.tensors else None)
            for own, side in zip(held, inputs, strict=True)
        ],
        "in_dtypes": [side.types for side in inputs],
        "out_dtypes": [side.types for side in outputs],
        "in_shapes": [side.shapes for side in inputs],
        "out_shapes": [side.shapes for side in outputs],
        "in_bytes": [side.bytes for side in inputs],
        "out_bytes": [side.bytes for side in outputs],
        "weights_dtype": [own[0] for own in held],
        "weights_count": [own[1] for own in held],
        "weights_bytes": [own[2] for own in held],
        "tactic": [text or None for text in _texts([layer.get("TacticName") for layer in layers])],
        "tactic_value": _texts([layer.get("TacticValue") for layer in layers]),
        "stream": [_small_int(layer.get("StreamId")) for layer in layers],
        "module": [module for module, _ in recorded],
        "operators": [operators for _, operators in recorded],
        "explanation": [
            explain(role, name, operators, layer_type)
            for role, name, (_, operators), layer_type in zip(roles, parsed, recorded, types, strict=True)
        ],
        "inputs": [side.tensors for side in inputs],
        "outputs": [side.tensors for side in outputs],
        "attributes": layers,
    }
    for layer in layers:
        for key in _OWN_COLUMNS:
            layer.pop(key, None)
    return columns


def _metadata(layer: dict[str, Any]) -> str | None:
    metadata = layer.get("Metadata")
    return metadata if isinstance(metadata, str) else None


def _recorded(metadata: str, name: LayerName) -> tuple[str | None, tuple[str, ...]]:
    """Return module and operators as a layer's Metadata records them, where it does.

    TensorRT writes ``[ONNX Layer: a]``; the host engine of this package an object with module and nodes.
    """
    module, operators = name.module, name.operators
    if metadata.startswith("{"):
        try:
            said = orjson.loads(metadata)
        except orjson.JSONDecodeError:
            return module, operators
        path, nodes = said.get("module"), said.get("nodes")
        if isinstance(path, str) and path:
            module = path if path.startswith("/") else "/" + path.replace(".", "/")
        if isinstance(nodes, list) and nodes:
            operators = tuple(node for node in nodes if isinstance(node, str))
        return module, operators
    found = onnx_layers(metadata)
    if not found:
        return module, operators
    if module is None:
        module = common_path(parent_path(n) if n.startswith("/") else None for n in found)
    return module, found


def _texts(values: list[Any]) -> list[str | None]:
    """Return values as text; None stays None."""
    if set(map(type, values)) <= {str, type(None)}:
        return values
    return [value if value is None or isinstance(value, str) else str(value) for value in values]


def _small_int(value: Any) -> int | None:
    if isinstance(value, int) and -(2**31) <= value < 2**31:
        return value
    return None


_new_tuple: Any = tuple.__new__


class _Side(NamedTuple):
    """Inputs or outputs of a layer, with what the columns say of them together."""

    tensors: tuple[Tensor, ...]
    types: str | None
    shapes: str | None
    bytes: int | None


class _TensorTable:
    """Reads tensors; shapes and formats repeat from layer to layer, so each pair is worked out once."""

    _ABSENT = _Side((), None, None, None)
    _EMPTY = _Side((), None, None, 0)

    def __init__(self) -> None:
        # (description, sizes) -> (shape, type, bytes, shape as text)
        self._known: dict[Any, tuple[tuple[int, ...] | None, str | None, int | None, str | None]] = {}

    def read(self, value: Any) -> _Side:
        """Return one ``Inputs`` or ``Outputs`` list."""
        if not isinstance(value, list):
            return self._ABSENT
        if len(value) == 1:
            try:  # the plain case, without a check that the lookup does not make
                item = value[0]
                name, described = item["Name"], item["Format/Datatype"]
                shape, dtype, size, text = self._known[(described, tuple(item["Dimensions"]))]
                location = item.get("Location")
                if type(name) is type(described) is str and (location is None or type(location) is str):
                    tensor = _new_tuple(Tensor, (name, shape, dtype, described, location, size))
                    side: _Side = _new_tuple(_Side, ((tensor,), dtype, text, size))
                    return side
            except (KeyError, TypeError, AttributeError):
                pass
        pairs = [self._tensor(item) for item in value if isinstance(item, (dict, str))]
        if not pairs:
            return self._EMPTY
        types = dict.fromkeys(known[1] or "?" for _, known in pairs)
        sizes = [known[2] for _, known in pairs]
        total = None if None in sizes else sum(size for size in sizes if size is not None)
        return _Side(
            tuple([tensor for tensor, _ in pairs]),
            None if types.keys() == {"?"} else ", ".join(types),
            "; ".join(known[3] or "?" for _, known in pairs),
            None if total is None or total >= 2**63 else total,
        )

    def _tensor(self, item: dict[str, Any] | str) -> tuple[Tensor, Any]:
        if isinstance(item, str):
            return Tensor(item, None, None, None, None, None), (None, None, None, None)
        layout = described = item.get("Format/Datatype")
        if layout is None:
            layout = item.get("Format")
            described = item.get("Datatype", item.get("DataType", layout))
        sizes = item.get("Dimensions")
        try:
            key = (described, tuple(sizes)) if sizes is not None else described
            known = self._known.get(key)
        except TypeError:  # something that is no list of numbers
            key, known = None, None
        if known is None:
            known = self._known[key] = _sized(sizes, described)
        name = item.get("Name", "")
        location = item.get("Location")
        tensor = Tensor(
            name if isinstance(name, str) else str(name),
            known[0],
            known[1],
            layout if isinstance(layout, str) else None,
            location if location is None or isinstance(location, str) else str(location),
            known[2],
        )
        return tensor, known


def _sized(sizes: Any, described: Any) -> tuple[tuple[int, ...] | None, str | None, int | None, str | None]:
    shape = None
    if isinstance(sizes, list) and all(type(size) is int for size in sizes):
        shape = tuple(sizes)
    dtype = dtype_of(described) if isinstance(described, str) else None
    return shape, dtype, tensor_bytes(shape, dtype), shape_text(shape)


class _Weights:
    """Reads type, elements and bytes of weights and bias; the combinations repeat."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[str | None, int | None, int | None]] = {}

    def read(self, layer: dict[str, Any]) -> tuple[str | None, int | None, int | None]:
        """Return (type of the weights, elements, bytes) of weights and bias."""
        try:
            own, bias = layer["Weights"], layer["Bias"]
            return self._known[((own["Type"], own["Count"]), (bias["Type"], bias["Count"]))]
        except (KeyError, TypeError):  # not known yet, or not so plain
            pass
        weights = layer.get("Weights") or layer.get("ConvWeights")
        bias = layer.get("Bias") or layer.get("ConvBias")
        if weights is None and bias is None:
            return None, None, None
        parts = [part if isinstance(part, dict) else None for part in (weights, bias)]
        try:
            key = tuple([None if part is None else (part.get("Type"), part.get("Count")) for part in parts])
            known = self._known.get(key)
        except TypeError:  # a type that is no text
            return None, None, None
        if known is None:
            known = self._known[key] = _weighed(*key)
        return known


def _weighed(*parts: tuple[Any, Any] | None) -> tuple[str | None, int | None, int | None]:
    dtype, count, size = None, None, None
    unknown = False
    for index, part in enumerate(parts):
        if part is None:
            continue
        kind = dtype_of(part[0]) if isinstance(part[0], str) else None
        elements = part[1]
        if index == 0:
            dtype = kind
        if type(elements) is not int or not 0 <= elements < 2**62:
            unknown = True
            continue
        count = elements + (count or 0)
        own = tensor_bytes((elements,), kind)
        unknown |= own is None and elements > 0
        size = (size or 0) + (own or 0)
    return dtype, count, None if unknown else size


def _profiles(
    names: list[str], parsed: list[LayerName], inputs: list[_Side], outputs: list[_Side]
) -> list[int]:
    """Tell the optimisation profile of each layer.

    Names carry it as ``[profile N]``, save those of Myelin kernels: these have it in a tensor's name, or
    share the number of their compiled region with a layer that has it.
    """
    if not any("[profile " in name for name in names):
        return [0] * len(names)
    own: list[int | None] = []
    region: dict[int, int] = {}
    for name, ins, outs in zip(parsed, inputs, outputs, strict=True):
        profile = name.profile
        if profile is None:
            for tensor in (*ins.tensors, *outs.tensors):
                if "[profile " in tensor.name and (found := _PROFILE.search(tensor.name)):
                    profile = int(found.group(1))
                    break
        if profile is not None and name.myelin_graph is not None:
            region.setdefault(name.myelin_graph, profile)
        own.append(profile)
    out = []
    for name, profile in zip(parsed, own, strict=True):
        if profile is None and name.myelin_graph is not None:
            profile = region.get(name.myelin_graph)
        out.append(min(profile or 0, 2**31 - 1))
    return out
