"""Writes ETDump files by hand: an own flatbuffer writer, front to back, independent of the reader under test.

Objects are written one after another with every reference leading forward, so that a file that is cut off
keeps its first events (ExecuTorch's own writer puts the layout records last).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

IDENTIFIER = b"ED00"


@dataclass(frozen=True)
class Scalar:
    """A field or element stored in place, in a ``struct`` format."""

    format: str
    value: Any


@dataclass(frozen=True)
class Scalars:
    """A vector of numbers."""

    format: str
    values: Sequence[Any]


@dataclass(frozen=True)
class Table:
    """A table: slot -> Scalar, Scalars, Table, str, bytes or list of Tables; None: absent."""

    fields: Mapping[int, Any]


def profile(
    name: str | bytes | None = None,
    start: int = 0,
    end: int = 0,
    *,
    chain: int = 0,
    instruction: int = -1,
    number: int = -1,
    identifier: str | bytes | None = None,
    metadata: bytes | None = None,
) -> Table:
    """Return an Event that holds a ProfileEvent; fields with the schema's default value are left out."""
    fields: dict[int, Any] = {
        0: name,
        1: Scalar("<i", chain) if chain else None,
        2: Scalar("<i", instruction) if instruction != -1 else None,
        3: Scalar("<i", number) if number != -1 else None,
        4: identifier,
        5: None if metadata is None else Scalars("<B", metadata),
        6: Scalar("<Q", start) if start else None,
        7: Scalar("<Q", end) if end else None,
    }
    return Table({0: Table(fields)})


def allocation(allocator: int, size: int) -> Table:
    return Table({1: Table({0: Scalar("<i", allocator), 1: Scalar("<Q", size)})})


def tensor(scalar_type: int, sizes: Sequence[int], strides: Sequence[int], offset: int) -> Table:
    return Table(
        {
            0: Scalar("<b", scalar_type),
            1: Scalars("<q", sizes),
            2: Scalars("<q", strides),
            3: Scalar("<q", offset),
        }
    )


def debug(value: Mapping[int, Any], **fields: Any) -> Table:
    """Return an Event that holds a DebugEvent; ``value`` has the slots of the schema's Value."""
    names = {"chain": (0, "<Q"), "instruction": (1, "<i"), "number": (3, "<i")}
    table: dict[int, Any] = {2: Table(value), 4: fields.pop("identifier", None), 5: fields.pop("name", None)}
    for key, content in fields.items():
        slot, form = names[key]
        table[slot] = Scalar(form, content)
    return Table({2: Table(table)})


def run(
    events: Iterable[Table], name: str | None = "Execute", allocators: Sequence[str] = (), bundled: int = -1
) -> Table:
    return Table(
        {
            0: name,
            1: Scalar("<i", bundled) if bundled != -1 else None,
            2: [Table({0: allocator}) for allocator in allocators] or None,
            3: list(events),
        }
    )


def etdump(runs: Sequence[Table], *, prefix: bool = True, version: int = 0) -> bytes:
    """Return a whole file."""
    body = encode(Table({0: Scalar("<I", version) if version else None, 1: list(runs)}))
    return struct.pack("<I", len(body)) + body if prefix else body


def encode(root: Table, identifier: bytes = IDENTIFIER) -> bytes:
    """Return a flatbuffer with ``root`` as its root table."""
    out = bytearray(b"\0\0\0\0" + identifier)
    pending: list[tuple[int, Any]] = [(0, root)]
    while pending:
        at, child = pending.pop()
        struct.pack_into("<I", out, at, _write(out, child, pending) - at)
    while len(out) % 8:
        out.append(0)
    return bytes(out)


def _write(out: bytearray, item: Any, pending: list[tuple[int, Any]]) -> int:
    """Append an object; leave its references to be filled in; return its position."""
    while len(out) % 8:
        out.append(0)
    if isinstance(item, Table):
        return _write_table(out, item, pending)
    if isinstance(item, Scalars):
        width = struct.calcsize(item.format)
        if width == 8:
            out.extend(b"\0\0\0\0")  # the count lies before the first element, which is aligned
        at = len(out)
        out.extend(struct.pack("<I", len(item.values)))
        for value in item.values:
            out.extend(struct.pack(item.format, value))
        return at
    if isinstance(item, list):
        at = len(out)
        out.extend(struct.pack("<I", len(item)) + bytes(4 * len(item)))
        # pushed in reverse: the first element is written first
        pending.extend((at + 4 + 4 * i, child) for i, child in reversed(list(enumerate(item))))
        return at
    text = item.encode() if isinstance(item, str) else item
    at = len(out)
    out.extend(struct.pack("<I", len(text)) + text + b"\0")
    return at


def _write_table(out: bytearray, table: Table, pending: list[tuple[int, Any]]) -> int:
    fields = {slot: value for slot, value in table.fields.items() if value is not None}
    slots = max(fields, default=-1) + 1
    vtable_size = 4 + 2 * slots
    # eight-byte fields first, so that all are aligned behind the four bytes of the vtable's offset
    vtable_at = len(out)
    out.extend(bytes(vtable_size))
    while len(out) % 8 != 4:
        out.append(0)
    at = len(out)
    out.extend(struct.pack("<i", at - vtable_at))
    offsets = [0] * slots
    references = []
    width = {slot: struct.calcsize(v.format) if isinstance(v, Scalar) else 4 for slot, v in fields.items()}
    for slot in sorted(fields, key=lambda s: -width[s]):
        value = fields[slot]
        offsets[slot] = len(out) - at
        if isinstance(value, Scalar):
            out.extend(struct.pack(value.format, value.value))
        else:
            references.append((len(out), value))
            out.extend(bytes(4))
    struct.pack_into(f"<HH{slots}H", out, vtable_at, vtable_size, len(out) - at, *offsets)
    pending.extend(reversed(references))
    return at


def tiled(events: Sequence[Table], runs: int, period_ticks: int) -> bytes:
    """Return a large file of ``runs`` runs, each with the same events, ``period_ticks`` apart.

    One run is written once and copied: references are relative, only the times differ.
    """
    blob = encode(run(events))
    run_at = struct.unpack_from("<I", blob)[0]
    places = _times(blob, run_at)
    copies = np.tile(np.frombuffer(blob, np.uint8), (runs, 1))
    shift = np.arange(runs, dtype=np.uint64) * np.uint64(period_ticks)
    for place, value in places:
        copies[:, place : place + 8] = (shift + np.uint64(value)).astype("<u8")[:, None].view(np.uint8)
    head = bytearray(encode(Table({1: []})))
    root = struct.unpack_from("<I", head)[0]
    vector = root + 4 + struct.unpack_from("<I", head, root + 4)[0]
    del head[vector + 4 :]
    struct.pack_into("<I", head, vector, runs)
    slots_at = len(head)
    blobs_at = (slots_at + 4 * runs + 7) // 8 * 8
    slots = blobs_at + np.arange(runs, dtype=np.int64) * len(blob) + run_at
    slots -= slots_at + 4 * np.arange(runs, dtype=np.int64)
    body = (
        bytes(head) + slots.astype("<u4").tobytes() + bytes(blobs_at - slots_at - 4 * runs) + copies.tobytes()
    )
    return struct.pack("<I", len(body)) + body


def _times(blob: bytes, run_at: int) -> list[tuple[int, int]]:
    """Return (position, value) of every start and end in a run."""
    places = []
    events = _reference(blob, run_at, 3)
    for i in range(struct.unpack_from("<I", blob, events)[0]):
        slot = events + 4 + 4 * i
        event = _reference(blob, slot + struct.unpack_from("<I", blob, slot)[0], 0)
        for field in (6, 7):
            at = _field(blob, event, field)
            if at is None:
                raise ValueError("every event needs a start and an end other than 0")
            places.append((at, struct.unpack_from("<Q", blob, at)[0]))
    return places


def _field(blob: bytes, table: int, slot: int) -> int | None:
    vtable = table - struct.unpack_from("<i", blob, table)[0]
    size = struct.unpack_from("<H", blob, vtable)[0]
    offset = struct.unpack_from("<H", blob, vtable + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
    return table + offset if offset else None


def _reference(blob: bytes, table: int, slot: int) -> int:
    at = _field(blob, table, slot)
    assert at is not None
    return at + struct.unpack_from("<I", blob, at)[0]
