"""Layer information: what ``trtexec --exportLayerInfo`` and the engine inspector write, TensorRT 8.2 to 11.

The document is ``{"Layers": [...], "Bindings": [...]}``; TensorRT 11 has ``"I/O Tensors"`` in place of the
bindings. A layer is an object when the engine was built with ``profilingVerbosity=detailed``, a bare name
with ``layer_names_only``, and absent with ``none``. Merged files are plain lists; a single layer may stand
alone.

The native reader takes strict JSON; what is not is mended first
(:mod:`torchtrt_viz.formats.io.lenient_json`) and given to it as the JSON that it should have been.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.info import Tensor
from torchtrt_viz.formats.io.lenient_json import parse_json
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

__all__ = ["Attributes", "Graph", "graph_of_names", "layer_columns", "read_graph"]

_CODED = ("type", "precision", "weights_dtype", "tactic", "tactic_value")
_PLAIN = ("role", "profile", "stream", "weights_count", "weights_bytes")
_new_tuple: Any = tuple.__new__


@dataclass
class Graph:
    """A layer information document.

    ``columns`` are those of the native reader, ``bindings`` names (up to TensorRT 10) or mappings (TensorRT
    11), ``header`` what stands beside them.
    """

    columns: dict[str, Any]
    names: list[str] = field(default_factory=list)
    bindings: list[Any] = field(default_factory=list)
    verbosity: str = "none"
    header: dict[str, Any] = field(default_factory=dict)
    entries: int = 0  # layers and bindings in the document, those that were left out too


class Attributes(Mapping[str, Any]):
    """What the file records of a layer beyond the columns; read from its JSON when it is asked for."""

    __slots__ = ("_begin", "_end", "_text", "_value")

    def __init__(self, text: bytes, begin: int, end: int) -> None:
        self._text = text
        self._begin = begin
        self._end = end
        self._value: dict[str, Any] | None = None

    def _read(self) -> dict[str, Any]:
        if self._value is None:
            self._value = orjson.loads(self._text[self._begin : self._end])
        return self._value

    def __getitem__(self, key: str) -> Any:
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(self._read())


def read_graph(document: bytes | Any, name: str, options: LoadOptions) -> Graph:
    """Read layer information.

    Parameters
    ----------
    document
        The file's bytes, or the value of a document.
    name
        Label for messages.
    options
        Receives repairs.

    Raises
    ------
    TraceFormatError
        When it is no layer information.
    """
    columns = native("trex").read_layers(document if isinstance(document, bytes) else _strict(document, name))
    if columns is None and isinstance(document, bytes):
        columns = native("trex").read_layers(_strict(parse_json(document, name, options), name))
    if not isinstance(columns, dict):
        raise TraceFormatError(
            "no layer information in it",
            path=name,
            offset=0,
            expected='{"Layers": [...]}, a list of layers, or one layer',
            found="other JSON" if columns is False else "what is no JSON",
            hint="Write it with trtexec --exportLayerInfo=FILE --profilingVerbosity=detailed",
        )
    graph = _graph(columns)
    wrong = graph.entries - len(graph.names) - len(graph.bindings)
    if wrong:
        options.repaired(
            Repair("not_a_layer", "entries that are no layers or bindings were left out", name, count=wrong)
        )
    return graph


def graph_of_names(names: Sequence[str]) -> Graph:
    """Return the layer information of an engine of which only names are known."""
    return _graph(native("trex").read_layers(orjson.dumps(list(names))))


def _strict(document: object, name: str) -> bytes:
    try:
        return orjson.dumps(document)
    except TypeError as error:
        raise TraceFormatError(
            "the layer information cannot be read", path=name, offset=0, expected="JSON", found=str(error)
        ) from error


def _graph(columns: dict[str, Any]) -> Graph:
    names = columns["name"]
    header = orjson.loads(columns["header"])
    verbosity = "detailed" if columns["detailed"] else "layer_names_only" if names else "none"
    recorded = header.get("ProfilingVerbosity")
    if isinstance(recorded, str) and not names:
        verbosity = recorded.lower()
    given = orjson.loads(columns["bindings"])
    bindings = [b for b in given if isinstance(b, (str, dict))]
    entries = len(names) + int(columns["left_out"]) + len(given)
    return Graph(columns, names, bindings, verbosity, header, entries)


def layer_columns(graph: Graph) -> dict[str, Any]:
    """Return columns of `engine_info.LAYERS` as lists and arrays; missing numbers are -1."""
    columns = graph.columns
    count = len(graph.names)
    texts = np.array([*columns["texts"], None], dtype=object)  # code -1 is the last
    out: dict[str, Any] = {
        "name": columns["name"],
        "layer": np.arange(count, dtype=np.int32),
        "module": columns["module"],
        "operators": _objects(columns["operators"]),
        "explanation": columns["explanation"],
    }
    out.update({name: texts[columns[name]] for name in _CODED})
    out.update({name: columns[name] for name in _PLAIN})
    tensors = _tensors(columns["tensors"], texts)
    for side, prefix in (("inputs", "in"), ("outputs", "out")):
        said = columns[side]
        first, end = said["first"].tolist(), (said["first"] + said["count"]).tolist()
        out[side] = _objects([tuple(tensors[a:b]) for a, b in zip(first, end, strict=True)])
        out[f"{prefix}_dtypes"] = texts[said["types"]]
        out[f"{prefix}_shapes"] = texts[said["shapes"]]
        out[f"{prefix}_bytes"] = said["bytes"]
    raw, ends = columns["attributes"], columns["attributes_end"].tolist()
    out["attributes"] = _objects([Attributes(raw, a, b) for a, b in zip([0, *ends], ends, strict=False)])
    return out


def _tensors(columns: dict[str, Any], texts: np.ndarray) -> list[Tensor]:
    sizes = columns["sizes"].tolist()
    shapes = [
        None if first < 0 else tuple(sizes[first : first + count])
        for first, count in zip(columns["first_size"].tolist(), columns["size_count"].tolist(), strict=True)
    ]
    return [
        _new_tuple(Tensor, (name, shape, dtype, layout, location, None if size < 0 else size))
        for name, shape, dtype, layout, location, size in zip(
            columns["name"],
            shapes,
            texts[columns["type"]].tolist(),
            texts[columns["format"]].tolist(),
            texts[columns["location"]].tolist(),
            columns["bytes"].tolist(),
            strict=True,
        )
    ]


def _objects(values: list[Any]) -> np.ndarray:
    """An array of the objects themselves: numpy would make a table of tuples of one length."""
    return np.fromiter(values, dtype=object, count=len(values))
