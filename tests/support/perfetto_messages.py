"""Perfetto messages written field by field, for tests of the reader (numbers as in google/perfetto)."""

from __future__ import annotations

import struct
import zlib
from typing import Any


def varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: Any) -> bytes:
    """One field: int -> varint, float -> double, str and bytes -> length-delimited, list -> repeated."""
    if isinstance(value, list):
        return b"".join(field(number, item) for item in value)
    if isinstance(value, bool) or type(value) is int:
        return varint(number << 3) + varint(int(value))
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    content = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed64(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def message(fields: dict[int, Any]) -> bytes:
    return b"".join(field(number, value) for number, value in fields.items())


def packet(fields: dict[int, Any], sequence: int | None = 1) -> bytes:
    """A TracePacket in its Trace; ``fields`` by number, values as `field` takes them."""
    body = message(fields)
    if sequence is not None:
        body += field(10, sequence)
    return field(1, body)


def event(
    type: int,
    name: str | int | None = None,
    *,
    track: int | None = None,
    category: str | int | list[Any] | None = None,
    extra: bytes = b"",
) -> bytes:
    """A TrackEvent: names and categories as text or as interned ids."""
    body = field(9, type)
    if track is not None:
        body += field(11, track)
    if isinstance(name, str):
        body += field(23, name)
    elif name is not None:
        body += field(10, name)
    for item in category if isinstance(category, list) else [] if category is None else [category]:
        body += field(22 if isinstance(item, str) else 3, item)
    return body + extra


BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def mark(
    ts: int, body: bytes, *, sequence: int | None = 1, flags: int = 0, more: dict[int, Any] | None = None
) -> bytes:
    """A packet with a track event."""
    fields: dict[int, Any] = {8: ts, 11: body}
    if flags:
        fields[13] = flags
    return packet({**fields, **(more or {})}, sequence)


def process(uuid: int, pid: int, name: str) -> bytes:
    return packet({60: message({1: uuid, 3: message({1: pid, 6: name})})})


def thread(uuid: int, parent: int, pid: int, tid: int, name: str) -> bytes:
    return packet({60: message({1: uuid, 5: parent, 4: message({1: pid, 2: tid, 5: name})})})


def track(uuid: int, name: str, parent: int | None = None) -> bytes:
    return packet({60: message({1: uuid, 2: name, **({} if parent is None else {5: parent})})})


def counter(uuid: int, name: str, **said: Any) -> bytes:
    numbers = {"unit": 3, "multiplier": 4, "incremental": 5, "unit_name": 6}
    return packet({60: message({1: uuid, 2: name, 8: message({numbers[k]: v for k, v in said.items()})})})


def interned(tables: dict[int, dict[int, str]], *, sequence: int = 1, flags: int = 1) -> bytes:
    """Interned strings: field of InternedData -> {iid: text}; by default with the state cleared."""
    entries = b"".join(
        field(number, message({1: iid, 2: text}))
        for number, table in tables.items()
        for iid, text in table.items()
    )
    return packet({12: entries, 13: flags}, sequence)


def annotation(name: str | int, value: Any) -> bytes:
    """A DebugAnnotation as a field of a TrackEvent."""
    return field(4, annotation_body(name, value))


def annotation_body(name: str | int | None, value: Any) -> bytes:
    head = b"" if name is None else field(10, name) if isinstance(name, str) else field(1, name)
    if isinstance(value, bool):
        return head + field(2, value)
    if isinstance(value, int):
        return head + field(4, value)
    if isinstance(value, float):
        return head + field(5, value)
    if isinstance(value, dict):
        return head + b"".join(field(11, annotation_body(key, item)) for key, item in value.items())
    if isinstance(value, list):
        return head + b"".join(field(12, annotation_body(None, item)) for item in value)
    return head + field(6, value)


def snapshot(
    clocks: dict[int, int], *, primary: int | None = None, sequence: int = 1, **scaled: Any
) -> bytes:
    """A ClockSnapshot; ``scaled``: c64=(multiplier, incremental)."""
    body = b""
    for clock, value in clocks.items():
        fields: dict[int, Any] = {1: clock, 2: value}
        multiplier, incremental = scaled.get(f"c{clock}", (None, False))
        if incremental:
            fields[3] = True
        if multiplier is not None:
            fields[4] = multiplier
        body += field(1, message(fields))
    if primary is not None:
        body += field(2, primary)
    return packet({6: body}, sequence)


def compressed(packets: bytes) -> bytes:
    return packet({50: zlib.compress(packets)}, None)
