"""What is known of an event beyond its name: shapes, module, source line, call stack.

Formats record these in different places: in the event's own arguments (shapes of a torch profile, module
and source line of an ETRecord), or as Python frames that enclose the event. Nothing is guessed: where
nothing was recorded the value is None.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.masks import among, choice, names_matching, strings
from torchtrt_viz.model.optional_ints import MISSING, filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["ATTRIBUTES", "attribute"]

Ints = NDArray[np.int64]
Objects = NDArray[Any]

_MODULE_FRAME = re.compile(r"^nn\.Module: ")
_SOURCE_FRAME = re.compile(r"\(\d+\): ")
_PORTION = 20_000


def attribute(trace: TraceData, rows: Ints, name: str) -> Objects:
    """Return one attribute of the spans at ``rows`` as text, None where it was not recorded.

    Parameters
    ----------
    name
        ``shape`` (input dimensions), ``dtype`` (input types), ``values``
        (concrete inputs), ``module`` (path of the ``nn.Module``),
        ``source`` (file and line), ``stack`` (Python frames, outermost first, joined by ``;``),
        ``op_type`` (operators of the exported graph), ``track``, ``iteration``, ``run_id``, ``kind``.

    Raises
    ------
    OptionError
        For another name.
    """
    choice("by", name, ATTRIBUTES)
    return _READERS[name](trace, rows)


def _arguments(*keys: str) -> Callable[[TraceData, Ints], Objects]:
    def read(trace: TraceData, rows: Ints) -> Objects:
        return _from_args(trace, rows, keys)

    return read


def _from_args(trace: TraceData, rows: Ints, keys: tuple[str, ...]) -> Objects:
    out = np.full(len(rows), None, dtype=object)
    for begin in range(0, len(rows), _PORTION):
        part = rows[begin : begin + _PORTION]
        left = np.arange(len(part))
        for key in keys:
            with _no_collection():
                codes, values = trace.args.values(part[left], key)
            texts = np.array([*map(as_text, values), None], dtype=object)
            out[begin + left] = texts[codes]
            left = left[codes < 0]
            if not len(left):
                break
    return out


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking through thousands of new mappings again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def as_text(value: object) -> str | None:
    """Return an argument's value as one line of text; None for nothing."""
    if value is None or value in ("", [], ()):
        return None
    if isinstance(value, str):
        return _whole(value)
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return _whole(str(value))


def _whole(text: str) -> str:
    """Replace halves of surrogate pairs, which files have and no column of texts takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _enclosed(pattern: re.Pattern[str], *keys: str) -> Callable[[TraceData, Ints], Objects]:
    """Read from the Python frame around the event; where there is none, from the event's arguments."""

    def read(trace: TraceData, rows: Ints) -> Objects:
        spans = trace.spans
        frames = among(spans["kind"], ("python",)) & names_matching(spans["name"], pattern)
        out = _enclosing_names(trace, rows, frames)
        missing = np.flatnonzero(pd.isna(out))
        out[missing] = _from_args(trace, rows[missing], keys)
        return out

    return read


def _stack(trace: TraceData, rows: Ints) -> Objects:
    out = python_stacks(trace, rows)
    missing = np.flatnonzero(pd.isna(out))
    out[missing] = _from_args(trace, rows[missing], ("stack", "Call stack", "stack_trace"))
    return out


def python_stacks(trace: TraceData, rows: Ints) -> Objects:
    """Return the enclosing Python frames of each row, outermost first, joined by ``;``."""
    spans = trace.spans
    above = nearest(host_nesting(trace).parent, among(spans["kind"], ("python",)))
    names = strings(spans["name"])
    known: dict[int, str | None] = {-1: None}

    def stack(row: int) -> str | None:
        path: list[int] = []
        while row not in known:
            path.append(row)
            row = int(above[row])
        text = known[row]
        for row in reversed(path):
            text = str(names[row]) if text is None else f"{text};{names[row]}"
            known[row] = text
        return text

    out = np.full(len(rows), None, dtype=object)
    for position, frame in enumerate(above[rows]):
        out[position] = stack(int(frame))
    return out


def _enclosing_names(trace: TraceData, rows: Ints, frames: NDArray[np.bool_]) -> Objects:
    if not frames.any():
        return np.full(len(rows), None, dtype=object)
    above = nearest(host_nesting(trace).parent, frames)[rows]
    names = strings(trace.spans["name"])
    out = np.full(len(rows), None, dtype=object)
    known = above >= 0
    out[known] = names[above[known]]
    return out


def _track(trace: TraceData, rows: Ints) -> Objects:
    labels = trace.tracks["label"].to_numpy(dtype=object)
    out: Objects = labels[trace.spans["track"].to_numpy()[rows]]
    return out


def _column(name: str) -> Callable[[TraceData, Ints], Objects]:
    def read(trace: TraceData, rows: Ints) -> Objects:
        column = trace.spans[name]
        if hasattr(column, "cat"):
            texts: Objects = strings(column)[rows]
            return texts
        numbers = filled(column)[rows]
        out = numbers.astype(object)
        out[numbers == MISSING] = None
        return out

    return read


_READERS: dict[str, Callable[[TraceData, Ints], Objects]] = {
    "shape": _arguments("Input Dims", "Input dims", "input_shapes"),
    "dtype": _arguments("Input type", "input_types"),
    "values": _arguments("Concrete Inputs"),
    "op_type": _arguments("op_types", "op_type"),
    "node": _arguments("node"),
    "provider": _arguments("provider"),
    "module": _enclosed(_MODULE_FRAME, "module", "module_path", "nn_module"),
    "source": _enclosed(_SOURCE_FRAME, "source", "source_line"),
    "stack": _stack,
    "track": _track,
    "iteration": _column("iteration"),
    "run_id": _column("run_id"),
    "kind": _column("kind"),
}
ATTRIBUTES = tuple(_READERS)
