"""Layer information: what ``trtexec --exportLayerInfo`` and the engine inspector write, TensorRT 8.2 to 11.

The document is ``{"Layers": [...], "Bindings": [...]}``; TensorRT 11 has ``"I/O Tensors"`` in place of the
bindings. A layer is an object when the engine was built with ``profilingVerbosity=detailed``, a bare name
with ``layer_names_only``, and absent with ``none``. Merged files are plain lists; a single layer may stand
alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

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
_COLUMNS: tuple[str, ...] = (
    "name",
    "layer",
    "type",
    "role",
    "profile",
    "precision",
    "in_dtypes",
    "out_dtypes",
    "in_shapes",
    "out_shapes",
    "in_bytes",
    "out_bytes",
    "weights_dtype",
    "weights_count",
    "weights_bytes",
    "tactic",
    "tactic_value",
    "stream",
    "module",
    "operators",
    "explanation",
    "inputs",
    "outputs",
    "attributes",
)
_WEIGHTS = ("Weights", "ConvWeights")
_BIAS = ("Bias", "ConvBias")
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
    parsed = [parse_name(name) for name in graph.names]
    tensors = _TensorTable()
    rows = [
        _row(layer, name, index, tensors) if isinstance(layer, dict) else _named_row(layer, name, index)
        for index, (layer, name) in enumerate(zip(graph.layers, parsed, strict=True))
    ]
    if not rows:
        return {name: [] for name in _COLUMNS}
    columns = {name: list(values) for name, values in zip(_COLUMNS, zip(*rows, strict=True), strict=True)}
    columns["profile"] = _profiles(parsed, columns["inputs"], columns["outputs"])
    return columns


def _named_row(text: str, name: LayerName, index: int) -> tuple[Any, ...]:
    role = role_of(None, name, text)
    operators = name.operators
    return (
        text,
        index,
        None,
        role,
        0,
        *([None] * 13),
        name.module,
        operators,
        explain(role, name, operators, None),
        (),
        (),
        {},
    )


def _row(layer: dict[str, Any], name: LayerName, index: int, tensors: _TensorTable) -> tuple[Any, ...]:
    text = layer["Name"]
    layer_type = _text(layer.get("LayerType"))
    inputs, outputs = tensors.read(layer.get("Inputs")), tensors.read(layer.get("Outputs"))
    weights_dtype, weights_count, weights_bytes = _weights(layer)
    role = role_of(layer_type, name, text)
    module, operators = name.module, name.operators
    tactic, tactic_value = _text(layer.get("TacticName")) or None, _text(layer.get("TacticValue"))
    stream = _small_int(layer.get("StreamId"))
    in_bytes = _bytes(inputs) if "Inputs" in layer else None
    out_bytes = _bytes(outputs) if "Outputs" in layer else None
    metadata = layer.get("Metadata")
    if isinstance(metadata, str) and metadata:
        module, operators = _recorded(metadata, module, operators)
    for key in _OWN_COLUMNS:  # what is left of the layer becomes its attributes
        layer.pop(key, None)
    return (
        text,
        index,
        layer_type,
        role,
        0,
        weights_dtype or (inputs[0].dtype if inputs else None),
        _types(inputs),
        _types(outputs),
        _shapes(inputs),
        _shapes(outputs),
        in_bytes,
        out_bytes,
        weights_dtype,
        weights_count,
        weights_bytes,
        tactic,
        tactic_value,
        stream,
        module,
        operators,
        explain(role, name, operators, layer_type),
        inputs,
        outputs,
        layer,
    )


def _recorded(
    metadata: str, module: str | None, operators: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """Return module and operators as a layer's Metadata records them, where it does.

    TensorRT writes ``[ONNX Layer: a]``; the host engine of this package an object with module and nodes.
    """
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


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value)


def _small_int(value: Any) -> int | None:
    if isinstance(value, int) and -(2**31) <= value < 2**31:
        return value
    return None


class _TensorTable:
    """Reads tensors; shapes and formats repeat from layer to layer, so each pair is worked out once."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[tuple[int, ...] | None, str | None, int | None]] = {}

    def read(self, value: Any) -> tuple[Tensor, ...]:
        """Return the tensors of one ``Inputs`` or ``Outputs`` list."""
        if not isinstance(value, list):
            return ()
        return tuple([self._tensor(item) for item in value if isinstance(item, (dict, str))])

    def _tensor(self, item: dict[str, Any] | str) -> Tensor:
        if isinstance(item, str):
            return Tensor(item, None, None, None, None, None)
        layout = described = item.get("Format/Datatype")
        if layout is None:
            layout = item.get("Format")
            described = item.get("Datatype", item.get("DataType", layout))
        sizes = item.get("Dimensions")
        try:
            key = (described, tuple(sizes)) if sizes is not None else described
            known = self._known.get(key)
        except TypeError:  # something that is no list of numbers
            key, known = None, (None, None, None)
        if known is None:
            known = self._known[key] = _sized(sizes, described)
        name = item.get("Name", "")
        return Tensor(
            name if isinstance(name, str) else str(name),
            known[0],
            known[1],
            layout if isinstance(layout, str) else None,
            _text(item.get("Location")),
            known[2],
        )


def _sized(sizes: Any, described: Any) -> tuple[tuple[int, ...] | None, str | None, int | None]:
    shape = None
    if isinstance(sizes, list) and all(type(size) is int for size in sizes):
        shape = tuple(sizes)
    dtype = dtype_of(described) if isinstance(described, str) else None
    return shape, dtype, tensor_bytes(shape, dtype)


def _types(tensors: tuple[Tensor, ...]) -> str | None:
    if len(tensors) == 1:
        return tensors[0].dtype
    known = dict.fromkeys(tensor.dtype or "?" for tensor in tensors)
    return ", ".join(known) if known and known.keys() != {"?"} else None


def _shapes(tensors: tuple[Tensor, ...]) -> str | None:
    if len(tensors) == 1:
        return shape_text(tensors[0].shape)
    return "; ".join(shape_text(tensor.shape) or "?" for tensor in tensors) if tensors else None


def _bytes(tensors: tuple[Tensor, ...]) -> int | None:
    total = 0
    for tensor in tensors:
        if tensor.bytes is None:
            return None
        total += tensor.bytes
    return total if total < 2**63 else None


def _held(layer: dict[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        held = layer.get(key)
        if isinstance(held, dict):
            return held
    return None


def _weights(layer: dict[str, Any]) -> tuple[str | None, int | None, int | None]:
    """Return (type of the weights, elements, bytes) of weights and bias."""
    dtype, count, size = None, None, None
    unknown = False
    for keys in (_WEIGHTS, _BIAS):
        held = _held(layer, keys)
        if held is None:
            continue
        elements = held.get("Count")
        kind = dtype_of(held["Type"]) if isinstance(held.get("Type"), str) else None
        if keys is _WEIGHTS:
            dtype = kind
        if type(elements) is not int or not 0 <= elements < 2**62:
            unknown = True
            continue
        count = elements + (count or 0)
        part = tensor_bytes((elements,), kind)
        if part is None and elements:
            unknown = True
        size = (size or 0) + (part or 0)
    return dtype, count, None if unknown else size


def _profiles(names: list[LayerName], inputs: list[Any], outputs: list[Any]) -> list[int]:
    """Tell the optimisation profile of each layer.

    Names carry it as ``[profile N]``, save those of Myelin kernels: these have it in a tensor's name, or
    share the number of their compiled region with a layer that has it.
    """
    own: list[int | None] = []
    region: dict[int, int] = {}
    for name, ins, outs in zip(names, inputs, outputs, strict=True):
        profile = name.profile
        if profile is None:
            for tensor in (*ins, *outs):
                if "[profile " in tensor.name and (found := _PROFILE.search(tensor.name)):
                    profile = int(found.group(1))
                    break
        if profile is not None and name.myelin_graph is not None:
            region.setdefault(name.myelin_graph, profile)
        own.append(profile)
    out = []
    for name, profile in zip(names, own, strict=True):
        if profile is None and name.myelin_graph is not None:
            profile = region.get(name.myelin_graph)
        out.append(min(profile or 0, 2**31 - 1))
    return out
