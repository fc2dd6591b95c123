"""The first fields of a protobuf file of unknown kind, for telling what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["FIXED32", "FIXED64", "LENGTH", "VARINT", "Wire", "fields", "first_field", "text_of", "varint"]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class Wire:
    """One field of a message: its number, wire type, value, content, and whether its end is missing."""

    number: int
    wire: int
    value: int = 0
    content: bytes = b""
    cut: bool = False


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return (value, index behind it), the index -1 when it is cut or too long."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


def fields(data: bytes, most: int = 1000) -> Iterator[Wire | None]:
    """Yield the fields of a message, at most so many; None where it does not read as one, then nothing.

    The last field may be cut: what is there of it is its content.
    """
    at, end = 0, len(data)
    while at < end and most > 0:
        most -= 1
        tag, at = varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if at < 0 or not 0 < number < 1 << 29 or wire not in (VARINT, FIXED64, LENGTH, FIXED32):
            yield None
            return
        if wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            yield Wire(number, wire, content=data[at : at + size], cut=at + size > end)
            at += size
            continue
        value, at = varint(data, at, end)
        if at < 0:
            yield None
            return
        if wire == VARINT:
            yield Wire(number, wire, value=value)
        else:
            yield Wire(number, wire, content=data[at : at + value], cut=at + value > end)
            at += value


def first_field(data: bytes) -> Wire | None:
    """Return the first field of a message; None where it has none."""
    return next(iter(fields(data, 1)), None) if data else None


def text_of(field: Wire) -> str | None:
    """Return a field's text; None where it is no readable text."""
    if field.wire != LENGTH:
        return None
    try:
        said = field.content.decode("utf-8", "ignore" if field.cut else "strict")
    except UnicodeDecodeError:
        return None
    return said if said.isprintable() else None
