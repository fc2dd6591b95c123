"""The engine inspector's one-line-per-layer text, turned into what its JSON would be.

::

    Name: a, LayerType: kgen, Inputs: [ { Name: x, Dimensions: [1,40], Format/Datatype: Int32 }],
    Outputs: [...], TacticName: t, StreamId: 0, Metadata: [ONNX Layer: n]     (all in one line)

The text is not escaped, so that a name with ``, LayerType: `` in it cannot be told from two fields.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

__all__ = ["parse_layer_line"]

_FIELD = re.compile(r", (?=[A-Z][A-Za-z]+: ?)")
_TENSOR_FIELDS = (", Location: ", ", Dimensions: [", ", Format/Datatype: ", ", Format: ", ", Datatype: ")


def parse_layer_line(line: str) -> dict[str, Any] | None:
    """Return the layer as a mapping with the keys of the JSON form; None when the line is no layer."""
    name, found, rest = line[len("Name: ") :].partition(", LayerType: ")
    if not found:
        return None
    layer_type, found, rest = rest.partition(", Inputs: [")
    if not found:
        return {"Name": name, "LayerType": layer_type.split(",")[0]}
    inputs, found, rest = rest.partition("], Outputs: [")
    if not found:
        return None
    # tensors hold "]" themselves: the list ends at the first one that follows a brace, or at once
    if rest.startswith("]"):
        outputs, rest = "", rest[1:]
    else:
        end = rest.find("}]")
        outputs, rest = (rest[: end + 1], rest[end + 2 :]) if end >= 0 else (rest, "")
    layer: dict[str, Any] = {
        "Name": name,
        "LayerType": layer_type,
        "Inputs": _tensors(inputs),
        "Outputs": _tensors(outputs),
    }
    for item in _FIELD.split(rest.lstrip(", ")):
        key, colon, value = item.partition(":")
        if colon and key.strip():
            layer[key.strip()] = _value(value.strip().rstrip(","))
    return layer


def _tensors(text: str) -> list[dict[str, Any]]:
    out = []
    for piece in text.split("{ Name: ")[1:]:
        piece = piece.rstrip(", ").removesuffix("}").rstrip()
        tensor: dict[str, Any] = {}
        key = "Name"
        while True:
            at, mark = min(((piece.find(m), m) for m in _TENSOR_FIELDS if m in piece), default=(-1, ""))
            tensor[key] = piece if at < 0 else piece[:at]
            if at < 0:
                break
            piece = piece[at + len(mark) :]
            key = mark.strip(", :[")
        sizes = tensor.get("Dimensions")
        if isinstance(sizes, str):
            tensor["Dimensions"] = _sizes(sizes.rstrip("]"))
        out.append(tensor)
    return out


def _sizes(text: str) -> list[int] | None:
    try:
        return [int(size) for size in text.split(",")] if text.strip() else []
    except ValueError:
        return None


def _value(text: str) -> Any:
    """Numbers, lists and mappings are written as in JSON; anything else is text."""
    if text[:1] in "[{-0123456789":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text
