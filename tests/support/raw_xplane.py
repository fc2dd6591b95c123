"""A second reader of XPlanes, slow and plain, which shares no code with the package's."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["RawLine", "RawPlane", "raw_planes"]

Stats = dict[str, Any]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            value -= (1 << 64) if value >= 1 << 63 else 0
            yield tag >> 3, value
            continue
        size = 8 if wire == 1 else 4
        if wire == 2:
            size, at = _varint(data, at)
        yield tag >> 3, data[at : at + size]
        at += size


@dataclass
class RawLine:
    """A line: what its events say, times in picoseconds from the line's own start."""

    name: str = ""
    timestamp_ns: int = 0
    events: list[tuple[int, int, int, list[tuple[int, Any]]]] = field(default_factory=list)


@dataclass
class RawPlane:
    """A plane: its lines, and the names of its kinds of events and of statistics."""

    name: str = ""
    lines: list[RawLine] = field(default_factory=list)
    kinds: dict[int, str] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)

    def events(self) -> Iterator[tuple[str, str, int, int, Stats]]:
        """Yield line, name, start and duration (ps) and statistics of each event."""
        for line in self.lines:
            for kind, offset, duration, stats in line.events:
                named = {self.stats.get(key, ""): self._value(value) for key, value in stats}
                start = line.timestamp_ns * 1000 + offset
                yield line.name, self.kinds.get(kind, ""), start, duration, named

    def _value(self, value: Any) -> Any:
        return self.stats[value[1]] if isinstance(value, tuple) else value


def _stat(data: bytes) -> tuple[int, Any]:
    key, value = 0, None
    for number, content in _fields(data):
        if number == 1:
            key = content
        elif number == 2:
            value = struct.unpack("<d", content)[0]
        elif number in (3, 4):
            value = content
        elif number in (5, 6):
            value = content.decode(errors="replace")
        elif number == 7:
            value = ("ref", content)
    return key, value


def _named(entry: bytes) -> tuple[int, str]:
    key, name = 0, ""
    for number, content in _fields(entry):
        if number == 1:
            key = content
        elif number == 2:
            name = next((text.decode(errors="replace") for n, text in _fields(content) if n == 2), "")
    return key, name


def _line(data: bytes) -> RawLine:
    line = RawLine()
    for number, content in _fields(data):
        if number == 2:
            line.name = content.decode()
        elif number == 3:
            line.timestamp_ns = content
        elif number == 4:
            found = list(_fields(content))
            numbers = dict(item for item in found if item[0] != 4)
            stats = [_stat(value) for n, value in found if n == 4]
            line.events.append((numbers.get(1, 0), numbers.get(2, 0), numbers.get(3, 0), stats))
    return line


def raw_planes(path: Path) -> list[RawPlane]:
    """Read a file."""
    out = []
    for number, content in _fields(path.read_bytes()):
        if number != 1:
            continue
        plane = RawPlane()
        for inner, value in _fields(content):
            if inner == 2:
                plane.name = value.decode()
            elif inner == 3:
                plane.lines.append(_line(value))
            elif inner in (4, 5):
                key, name = _named(value)
                (plane.kinds if inner == 4 else plane.stats)[key] = name
        out.append(plane)
    return out
