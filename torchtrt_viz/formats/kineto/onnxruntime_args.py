"""Arguments of a profile of ONNX Runtime, under the names that torch.profiler has for the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torchtrt_viz.formats.kineto.args import EventArgs

__all__ = ["NODE_ENDING", "ProfileArgs"]

Ints = NDArray[np.int64]

NODE_ENDING = "_kernel_time"

#: Key -> the writer's own, and which side of its pairs {type: dimensions} is meant.
_TENSORS = {
    "Input Dims": ("input_type_shape", 1),
    "Input type": ("input_type_shape", 0),
    "Output Dims": ("output_type_shape", 1),
    "Output type": ("output_type_shape", 0),
}
_AXES = {axes: tuple(f"{axes}_{axis}" for axis in "xyz") for axes in ("grid", "block")}


class ProfileArgs:
    """What the file says of each event, and ``node``, ``op_type``, shapes, types and ``backend`` beside it.

    Parameters
    ----------
    args
        As they are in the file.
    nodes
        Names of nodes, and the one of each row, -1 none.
    compiled
        Rows of nodes that their provider compiled.
    """

    def __init__(
        self, args: EventArgs, nodes: tuple[list[str], NDArray[Any]], compiled: NDArray[np.bool_]
    ) -> None:
        self._args = args
        self._nodes = nodes
        self._compiled = compiled

    def read(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        rows = np.asarray(rows, np.int64)
        names, codes = self._nodes
        out = []
        for row, found in zip(rows.tolist(), self._args.read(rows), strict=True):
            more: dict[str, Any] = {}
            if codes[row] >= 0:
                more["node"] = names[codes[row]]
                if isinstance(found.get("op_name"), str):
                    more["op_type"] = found["op_name"]
            for key, (own, side) in _TENSORS.items():
                if (made := _side(found.get(own), side)) is not None:
                    more[key] = made
            for key, axes in _AXES.items():
                if (made := _axes([found.get(axis) for axis in axes])) is not None:
                    more[key] = made
            if self._compiled[row] and isinstance(found.get("provider"), str):
                more["backend"] = found["provider"]
            out.append({**more, **found})
        return out

    def values(self, rows: NDArray[Any], key: str) -> tuple[Ints, list[Any]]:
        """Return one argument of many rows: a code per row (-1 none), and each code's value."""
        rows = np.asarray(rows, np.int64)
        if key == "node":
            names, codes = self._nodes
            return np.asarray(codes[rows], np.int64), list(names)
        if key in _TENSORS:
            own, side = _TENSORS[key]
            found, values = self._args.values(rows, own)
            return _without_none(found, [_side(value, side) for value in values])
        if key == "op_type":
            found, values = self._args.values(rows, "op_name")
            found = np.where(np.asarray(self._nodes[1][rows]) >= 0, found, -1)
            return _without_none(found, [value if isinstance(value, str) else None for value in values])
        if key == "backend":
            found, values = self._args.values(rows, "provider")
            return np.where(self._compiled[rows], found, -1), values
        if key in _AXES:
            made = [details.get(key) for details in self.read(rows)]
            return _without_none(np.arange(len(made), dtype=np.int64), made)
        return self._args.values(rows, key)


def _without_none(codes: Ints, values: list[Any]) -> tuple[Ints, list[Any]]:
    known = np.array([*(value is not None for value in values), False], bool)
    return np.where(known[codes], codes, -1), values


def _side(value: Any, side: int) -> list[Any] | None:
    """Return the types (0) or the dimensions (1) of a list of pairs {type: dimensions}."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return None
    pairs: list[tuple[Any, Any]] = [next(iter(each.items()), ("", [])) for each in value]
    return [pair[side] for pair in pairs]


def _axes(texts: list[Any]) -> list[int] | None:
    if not all(isinstance(text, (str, int)) for text in texts):
        return None
    try:
        return [int(str(text)[:18]) for text in texts]
    except ValueError:
        return None
