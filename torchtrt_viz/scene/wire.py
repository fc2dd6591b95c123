"""The schema of what crosses to JavaScript in binary: the columns of every message, by name.

`pack` puts the columns of one message into one buffer and describes them in a small header, which travels as
JSON beside it. ``static/wire.js`` reads both back into typed arrays. The front end knows the same schema from
``static/schema.js``, which is made from this module::

    python -m torchtrt_viz.scene.wire > torchtrt_viz/widgets/static/schema.js

Columns begin at multiples of 8 bytes, so that JavaScript looks at them where they are, without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["MESSAGES", "Column", "javascript", "pack"]

_ALIGNMENT = 8
_PLANES = 7  # JavaScript's numbers are exact up to 2^53, and within a few ns up to what so many bytes hold
_WIDEST = 1 << 53  # differences of two such numbers fit into the planes


@dataclass(frozen=True)
class Column:
    """One column of a message.

    Attributes
    ----------
    dtype
        Of the values as JavaScript gets them; little-endian.
    optional
        May be missing from a message; JavaScript then finds null.
    encoding
        ``plain`` is the values as they are. ``planes`` are whole numbers for a compressed file: the sign in
        the lowest bit, then byte plane after byte plane, most of them zeros; the first byte says how many
        planes there are. ``running`` is the planes of the differences between neighbours.
    """

    name: str
    dtype: Literal["uint8", "uint16", "uint32", "int32", "float32", "float64"]
    meaning: str
    optional: bool = False
    encoding: Literal["plain", "planes", "running"] = "plain"


#: every message that has columns; times count in ns from the scene's origin unless it says otherwise
MESSAGES: dict[str, tuple[Column, ...]] = {
    "open": (
        Column("host_busy", "float32", "overview: busy share of the host's tracks, step by step"),
        Column("gpu_busy", "float32", "the same of the GPU's tracks"),
        Column("name_color", "uint8", "per name: its colour number"),
        Column("name_kind", "uint8", "per name: its kind, a position in `kinds`"),
        # Only of a trace that is sent whole:
        Column("start", "float64", "per event, lane after lane", optional=True),
        Column("dur", "float64", "per event", optional=True),
        Column("name", "int32", "per event: its name's number, -1 for none", optional=True),
        Column("row", "uint32", "per event: its row in the scene", optional=True),
        Column("lane_begin", "uint32", "per lane: position of its first event", optional=True),
        Column("lane_end", "uint32", "per lane: position after its last event", optional=True),
    ),
    "view": (
        Column("mode", "uint8", "per lane asked for: 0 empty, 1 its spans, 2 cells and the wide spans"),
        Column("span_begin", "uint32", "per lane and once more: where its spans begin"),
        Column("start", "float32", "per span, from the view's beginning"),
        Column("dur", "float32", "per span"),
        Column("row", "uint32", "per span: its row in the scene"),
        Column("name", "uint16", "per span: position in `names`"),
        Column("marked", "uint8", "per span: 1 if marked; empty while nothing is marked"),
        Column("cell_busy", "uint8", "per cell, lane after lane: busy share, 255 is all of it"),
        Column("cell_name", "uint16", "per cell: position in `names` of what fills most of it"),
        Column("cell_marked", "uint8", "per cell: marked share; empty while nothing is marked"),
        Column("names", "int32", "numbers of the names that occur"),
    ),
    "counters": (
        Column("low", "float32", "lowest value per pixel column, counter after counter; NaN for none"),
        Column("high", "float32", "highest value, in the same way"),
    ),
    "marks": (
        Column("names", "uint8", "per name: 1 if marked", optional=True),
        Column("rows", "uint8", "per row of the scene: 1 if marked", optional=True),
    ),
    "page": (
        Column("host_busy", "uint8", "overview: busy share of the host's tracks, 255 is all"),
        Column("gpu_busy", "uint8", "the same of the GPU's tracks"),
        Column("name_color", "uint8", "per name: its colour number"),
        Column("name_kind", "uint8", "per name: its kind, a position in `kinds`"),
        Column("start", "float64", "per event, lane after lane", encoding="running"),
        Column("dur", "float64", "per event", encoding="planes"),
        Column("name", "int32", "per event: its name's number, -1 for none", encoding="planes"),
        Column("row", "uint32", "per event: its row in the scene", encoding="running"),
        Column("lane_begin", "uint32", "per lane: position of its first event", encoding="planes"),
        Column("lane_end", "uint32", "per lane: position after its last event", encoding="planes"),
        Column("covered", "float64", "per event: what its children take of it", encoding="planes"),
        Column("iteration", "int32", "per event: -1 for none", encoding="planes"),
        Column("depth", "int32", "per event: nesting depth within its track, -1 for none", encoding="planes"),
        Column("kind", "int32", "per event: its kind less that of its name", encoding="planes"),
        Column("run", "int32", "per event: position in `runs`, -1 for none", encoding="planes"),
        Column("correlation", "float64", "per event: -1 for none", encoding="running"),
        # Only where short spans are merged into blocks:
        Column("share", "uint8", "per event: busy share of a block, 255 is all", optional=True),
        Column("stands", "int32", "per event: spans that it stands for", optional=True, encoding="planes"),
        Column("story_row", "float64", "per story of device work: row of the work", encoding="running"),
        Column("story_host", "float64", "per story: row of the launching call, -1 none", encoding="running"),
        Column("story_operator", "float64", "per story: row of the operator, -1 none", encoding="running"),
        Column("story_queued", "float64", "per story: from launch to start", encoding="planes"),
        Column("story_ahead", "int32", "per story: pieces that it waited for", encoding="planes"),
        Column("story_module", "int32", "per story: position in `stories`, -1 none", encoding="planes"),
        Column("story_shapes", "int32", "per story: position in `stories`, -1 none", encoding="planes"),
        Column("flow_source", "float64", "per link: row where it begins", encoding="running"),
        Column("flow_target", "float64", "per link: row where it ends", encoding="running"),
        Column("flow_name", "int32", "per link: position in `flow_names`", encoding="planes"),
        Column("counter_end", "uint32", "per counter: position after its last sample", encoding="planes"),
        Column("counter_time", "float64", "per sample", encoding="running"),
        Column("counter_value", "float64", "per sample; NaN where it is not a finite number"),
    ),
}


def pack(message: str, values: Mapping[str, NDArray[Any] | None]) -> tuple[dict[str, Any], bytes]:
    """Return the header and the buffer of one message.

    Parameters
    ----------
    message
        One of `MESSAGES`.
    values
        Every column by name: plain ones in the dtype of the schema, encoded ones as any whole numbers.
        Optional columns may be None or missing.

    Raises
    ------
    ValueError
        For a column that is missing, unknown, of another dtype, or holds numbers too large to be exact.
    """
    columns = MESSAGES[message]
    unknown = sorted(set(values) - {column.name for column in columns})
    if unknown:
        known = ", ".join(column.name for column in columns)
        raise ValueError(f"message {message!r} has no column {unknown[0]!r}; it has {known}")
    described: list[dict[str, Any]] = []
    parts: list[Any] = []
    offset = 0
    for column in columns:
        array = values.get(column.name)
        if array is None:
            if column.optional:
                continue
            raise ValueError(f"message {message!r} lacks its column {column.name!r}")
        data, encoding = _encoded(message, column, array)
        entry = {"name": column.name, "dtype": column.dtype, "offset": offset, "length": len(array)}
        if encoding != "plain":
            entry["encoding"] = encoding
        described.append(entry)
        gap = -data.nbytes % _ALIGNMENT
        parts += [data, bytes(gap)]
        offset += data.nbytes + gap
    return {"message": message, "columns": described}, b"".join(parts)


def since(times: NDArray[np.int64], origin_ns: int) -> NDArray[Any]:
    """Return times from ``origin_ns`` on: exact, or as doubles where 64 bits do not hold the difference."""
    if len(times) and max(int(times.max()) - origin_ns, origin_ns - int(times.min())) >= 1 << 62:
        return times.astype(np.float64) - float(origin_ns)
    return times - origin_ns


def _encoded(message: str, column: Column, array: NDArray[Any]) -> tuple[NDArray[np.uint8], str]:
    """Return the bytes of a column, and how they are encoded.

    Times that lie more than 400 days apart do not fit into planes: they go as the doubles that JavaScript
    has anyway, to the nearest nanoseconds that a double can say.
    """
    if column.encoding == "plain":
        if array.dtype != column.dtype or array.ndim != 1:
            raise ValueError(
                f"column {column.name!r} of message {message!r} must be {column.dtype} in one dimension, "
                f"not {array.dtype} in {array.ndim}"
            )
        return _plain(column, array), "plain"
    if column.dtype == "float64" and len(array) and not -_WIDEST < array.min() <= array.max() < _WIDEST:
        return _plain(column, array), "plain"
    numbers = array.astype(np.int64)
    if column.encoding == "running":
        numbers = np.diff(numbers, prepend=0)
    folded = ((numbers << 1) ^ (numbers >> 63)).astype("<u8")
    planes = max(1, (int(folded.max(initial=0)).bit_length() + 7) // 8)
    if planes > _PLANES:
        raise ValueError(f"column {column.name!r} of message {message!r} holds numbers of more than 2^55")
    bytes_ = folded.view(np.uint8).reshape(-1, 8)[:, :planes].T
    return np.concatenate([np.array([planes], np.uint8), bytes_.ravel()]), column.encoding


def _plain(column: Column, array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array, np.dtype(column.dtype).newbyteorder("<")).view(np.uint8)


def javascript() -> str:
    """Return the schema as the text of ``static/schema.js``."""
    lines = [
        "// @ts-check",
        "// Made from torchtrt_viz/scene/wire.py, which says how. Do not edit.",
        "",
        '/** Per message its columns and the type of their values; "?": may be missing, is null then. */',
        "export const MESSAGES = /** @type {const} */ ({",
    ]
    for message, columns in MESSAGES.items():
        lines.append(f"  {message}: {{")
        for column in columns:
            dtype = f"{column.dtype}{'?' if column.optional else ''}"
            lines.append(f'    {column.name}: "{dtype}", // {column.meaning}')
        lines.append("  },")
    return "\n".join([*lines, "});", ""])


if __name__ == "__main__":
    print(javascript(), end="")
