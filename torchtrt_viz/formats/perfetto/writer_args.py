"""Arguments of events in forms that files take."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from torchtrt_viz.formats.perfetto.writer_layout import clean

__all__ = ["encode_annotations", "plain"]

_DEEPEST = 32
#: Arguments that are columns of the spans, and written as such.
_COLUMNS = frozenset(("correlation", "external_id", "External id", "iteration", "run_id"))
_ANNOTATION_FIELD = 4  # TrackEvent.debug_annotations
_BOOL, _UINT, _INT, _DOUBLE, _STRING, _NAME, _DICT, _ARRAY = 2, 3, 4, 5, 6, 10, 11, 12


def plain(value: object, depth: int = 0) -> Any:
    """Return ``value`` as JSON has it: mappings, lists, text, numbers; anything else as text."""
    if depth > _DEEPEST:
        return "..."
    if value is None or isinstance(value, (bool, str)):
        return clean(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {clean(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a numpy number
        value = value.item()
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    return clean(value)


def encode_annotations(rows: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Return for each mapping the encoded ``debug_annotations`` of a TrackEvent."""
    return [
        b"".join(
            _field(_ANNOTATION_FIELD, _annotation(name, plain(value)))
            for name, value in row.items()
            if name not in _COLUMNS
        )
        for row in rows
    ]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _annotation(name: str | None, value: Any) -> bytes:
    head = b"" if name is None else _field(_NAME, clean(name).encode())
    if isinstance(value, bool):
        return head + _varint(_BOOL << 3) + _varint(int(value))
    if isinstance(value, int):
        number = _UINT if value >= 2**63 else _INT
        return head + _varint(number << 3) + _varint(value & 0xFFFFFFFFFFFFFFFF)
    if isinstance(value, float):
        return head + _varint(_DOUBLE << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, dict):
        return head + b"".join(_field(_DICT, _annotation(key, item)) for key, item in value.items())
    if isinstance(value, list):
        return head + b"".join(_field(_ARRAY, _annotation(None, item)) for item in value)
    return head + _field(_STRING, ("" if value is None else value).encode())
