"""XPlanes as XLA's profiler writes them, byte by byte after ``xplane.proto``.

A plane is a `Plane`; descriptions and statistics get their numbers in the order of their first use.
Descriptions are written behind the lines, as protobuf writes fields in the order of their numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfetto_messages import varint

__all__ = ["Plane", "blob", "number", "text", "xspace"]

Value = int | float | str | bytes


def number(name: int, value: int) -> bytes:
    """Write an integer field; negative ones take ten bytes."""
    return varint(name << 3) + varint(value % (1 << 64))


def blob(name: int, content: bytes) -> bytes:
    """Write a length-delimited field."""
    return varint(name << 3 | 2) + varint(len(content)) + content


def text(name: int, content: str) -> bytes:
    """Write a text field."""
    return blob(name, content.encode())


@dataclass
class Plane:
    """One plane under construction."""

    name: str
    id: int = 0
    stats: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lines: list[bytes] = []
        self._kinds: dict[str, tuple[int, str, Mapping[str, Value]]] = {}
        self._stats: dict[str, int] = {}

    def kind(self, name: str, display: str = "", stats: Mapping[str, Value] | None = None) -> str:
        """Describe events of a name; returns the name."""
        self._kinds.setdefault(name, (len(self._kinds) + 1, display, stats or {}))
        return name

    def _stat(self, name: str, value: Value) -> bytes:
        known = self._stats.setdefault(name, len(self._stats) + 1)
        out = number(1, known)
        if isinstance(value, float):
            return out + varint(2 << 3 | 1) + struct.pack("<d", value)
        if isinstance(value, int):
            return out + number(3 if value >= 1 << 63 else 4, value)
        if isinstance(value, bytes):
            return out + blob(6, value)
        if value.startswith("ref:"):  # a text held once for the whole plane
            return out + number(7, self._stats.setdefault(value[4:], len(self._stats) + 1))
        return out + text(5, value)

    def event(
        self,
        name: str,
        offset_ps: int | None,
        duration_ps: int,
        stats: Mapping[str, Value] | None = None,
        occurrences: int | None = None,
    ) -> bytes:
        """Return one event of a line."""
        self.kind(name)
        out = number(1, self._kinds[name][0])
        if offset_ps is not None:
            out += number(2, offset_ps)
        if occurrences is not None:
            out += number(5, occurrences)
        out += number(3, duration_ps)
        return out + b"".join(blob(4, self._stat(key, value)) for key, value in (stats or {}).items())

    def line(
        self, name: str, events: Sequence[bytes], id: int = 1, timestamp_ns: int = 0, display: str = ""
    ) -> Plane:
        """Add a line."""
        head = number(1, id) + text(2, name) + number(3, timestamp_ns)
        tail = text(11, display) if display else b""
        self._lines.append(blob(3, head + b"".join(blob(4, event) for event in events) + tail))
        return self

    def encoded(self) -> bytes:
        """Return the message."""
        stats = b"".join(blob(6, self._stat(key, value)) for key, value in self.stats.items())
        kinds = b""
        for name, (known, display, of_kind) in self._kinds.items():
            content = number(1, known) + text(2, name)
            content += text(4, display) if display else b""
            content += b"".join(blob(5, self._stat(key, value)) for key, value in of_kind.items())
            kinds += blob(4, number(1, known) + blob(2, content))
        names = b"".join(
            blob(5, number(1, known) + blob(2, number(1, known) + text(2, name)))
            for name, known in self._stats.items()
        )
        return number(1, self.id) + text(2, self.name) + b"".join(self._lines) + kinds + names + stats


def xspace(
    planes: Sequence[Plane],
    errors: Sequence[str] = (),
    warnings: Sequence[str] = (),
    hosts: Sequence[str] = (),
) -> bytes:
    """Return a file."""
    out = b"".join(blob(1, plane.encoded()) for plane in planes)
    for name, texts in ((2, errors), (3, warnings), (4, hosts)):
        out += b"".join(text(name, each) for each in texts)
    return out
