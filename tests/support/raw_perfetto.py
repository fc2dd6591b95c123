"""Packets of a Perfetto trace counted by a plain walk over the bytes, without the package."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator

import zstandard

DAMAGED = -1


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes, int]]:
    """(number, wire type, value, where it ends); raises ValueError or IndexError at damage."""
    at = 0
    while at < len(data):
        tag, at = number(data, at)
        wire = tag & 7
        value: int | bytes
        if wire == 0:
            value, at = number(data, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if size is None:
                if wire != 2:
                    raise ValueError(f"wire type {wire}")
                size, at = number(data, at)
            if at + size > len(data):
                raise ValueError("cut")
            value, at = data[at : at + size], at + size
        yield tag >> 3, wire, value, at


def packets(data: bytes, inside: bool = False) -> Iterator[tuple[int, int]]:
    """(field of the data, bytes) of each whole packet, compressed ones opened; stops where it is cut."""
    begin = 0
    try:
        for field, wire, body, end in fields(data):
            size, begin = end - begin, end
            if (field, wire) != (1, 2):
                continue
            assert isinstance(body, bytes)
            try:
                held = [(n, value) for n, w, value, _ in fields(body) if w == 2 and n not in (12, 59)]
            except (ValueError, IndexError):
                held = [(DAMAGED, b"")]
            packed = [(n, value) for n, value in held if n in (50, 133)]
            if packed and not inside:
                kind, content = packed[0]
                assert isinstance(content, bytes)
                opened = zlib.decompress(content) if kind == 50 else zstandard.decompress(content)
                yield from packets(opened, True)
            else:
                yield (held[-1][0] if held else 0), size
    except (ValueError, IndexError):
        return


def counts(data: bytes) -> tuple[Counter[int], int]:
    """Packets by the field of TracePacket that holds their data (0 none), and the bytes of all."""
    found = list(packets(data))
    return Counter(kind for kind, _ in found), sum(size for _, size in found)
