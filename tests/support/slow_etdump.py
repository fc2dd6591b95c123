"""A slow and simple ETDump reader for honest files: one field after the other, nothing vectorised.

Written from the schema (executorch/devtools/etdump/etdump_schema_flatcc.fbs), independent of the product's.
"""

from __future__ import annotations

import struct
from typing import Any


class _Table:
    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        self.size = struct.unpack_from("<H", data, self.vtable)[0]

    def place(self, slot: int) -> int:
        entry = 4 + 2 * slot
        offset = struct.unpack_from("<H", self.data, self.vtable + entry)[0] if entry < self.size else 0
        return self.at + offset if offset else 0

    def scalar(self, slot: int, form: str, default: Any) -> Any:
        at = self.place(slot)
        return struct.unpack_from(form, self.data, at)[0] if at else default

    def reference(self, slot: int) -> int:
        at = self.place(slot)
        return at + struct.unpack_from("<I", self.data, at)[0] if at else 0

    def raw(self, slot: int) -> bytes | None:
        at = self.reference(slot)
        if not at:
            return None
        length = struct.unpack_from("<I", self.data, at)[0]
        return self.data[at + 4 : at + 4 + length]

    def text(self, slot: int) -> str | None:
        found = self.raw(slot)
        return None if found is None else found.decode(errors="replace")

    def table(self, slot: int) -> _Table | None:
        at = self.reference(slot)
        return _Table(self.data, at) if at else None

    def tables(self, slot: int) -> list[_Table]:
        at = self.reference(slot)
        if not at:
            return []
        places = [at + 4 + 4 * i for i in range(struct.unpack_from("<I", self.data, at)[0])]
        return [_Table(self.data, p + struct.unpack_from("<I", self.data, p)[0]) for p in places]

    def longs(self, slot: int) -> list[int]:
        at = self.reference(slot)
        return (
            list(struct.unpack_from(f"<{struct.unpack_from('<I', self.data, at)[0]}q", self.data, at + 4))
            if at
            else []
        )


def parse(data: bytes) -> list[dict[str, Any]]:
    """Return the runs of a dump: name, bundled, allocators, profile, allocation and debug events."""
    body = data if data[4:8] == b"ED00" else data[4:]
    root = _Table(body, struct.unpack_from("<I", body)[0])
    runs = []
    for run in root.tables(1):
        out: dict[str, Any] = {
            "name": run.text(0),
            "bundled": run.scalar(1, "<i", -1),
            "allocators": [allocator.text(0) for allocator in run.tables(2)],
            "profile": [],
            "allocation": [],
            "debug": [],
        }
        for event in run.tables(3):
            if (found := event.table(0)) is not None:
                out["profile"].append(
                    {
                        "name": found.text(0),
                        "chain": found.scalar(1, "<i", 0),
                        "instruction": found.scalar(2, "<i", -1),
                        "delegate_id": found.scalar(3, "<i", -1),
                        "delegate_name": found.text(4),
                        "metadata": found.raw(5) or b"",
                        "start": found.scalar(6, "<Q", 0),
                        "end": found.scalar(7, "<Q", 0),
                    }
                )
            if (found := event.table(1)) is not None:
                out["allocation"].append(
                    (len(out["profile"]), found.scalar(0, "<i", 0), found.scalar(1, "<Q", 0))
                )
            if (found := event.table(2)) is not None:
                out["debug"].append(_debug(found, len(out["profile"])))
        runs.append(out)
    return runs


def _debug(event: _Table, after: int) -> dict[str, Any]:
    value = event.table(2)
    assert value is not None
    tensor = value.table(1)
    output = value.table(7)
    return {
        "after": after,
        "chain": event.scalar(0, "<q", 0),
        "instruction": event.scalar(1, "<i", -1),
        "type": value.scalar(0, "<b", 0),
        "output": None if output is None else bool(output.scalar(0, "<B", 0)),
        "tensor": None
        if tensor is None
        else {
            "scalar_type": tensor.scalar(0, "<b", 0),
            "sizes": tensor.longs(1),
            "strides": tensor.longs(2),
            "offset": tensor.scalar(3, "<q", 0),
        },
    }
