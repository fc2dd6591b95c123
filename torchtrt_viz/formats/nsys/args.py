"""Details of single events, read from their tables when somebody asks.

What torch.profiler records too has the key that it has there ("grid", "block", "bytes", "Input Dims", ...),
so that analyses find it; everything else has the name of its column, numbers of strings and of labels
replaced by these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.nsys.distinct import combinations
from torchtrt_viz.formats.nsys.enums import labels
from torchtrt_viz.formats.nsys.events import Part
from torchtrt_viz.formats.nsys.export import Export, Table
from torchtrt_viz.formats.nsys.memory import MEMORY, ON_HOST
from torchtrt_viz.formats.nsys.names import Names
from torchtrt_viz.formats.nsys.nvtx import NVTX, Domains
from torchtrt_viz.formats.nsys.places import Devices, process_of
from torchtrt_viz.formats.producers.torch_ranges import details_of, stem_of

__all__ = ["RowArgs"]

Ints = NDArray[np.int64]

_RENAMED = {
    "correlationId": "correlation",
    "deviceId": "device",
    "contextId": "context",
    "streamId": "stream",
    "registersPerThread": "registers per thread",
    "graphNodeId": "graph node id",
    "graphId": "graph id",
    "shortName": "short name",
    "mangledName": "mangled name",
    "demangledName": "demangled name",
}
_TEXT_IDS = frozenset({"shortName", "mangledName", "demangledName", "nameId", "textId", "jsonTextId"})
_ENUMS = {
    "copyKind": "ENUM_CUDA_MEMCPY_OPER",
    "srcKind": "ENUM_CUDA_MEM_KIND",
    "dstKind": "ENUM_CUDA_MEM_KIND",
    "memKind": "ENUM_CUDA_MEM_KIND",
    "memoryOperationType": "ENUM_CUDA_DEV_MEM_EVENT_OPER",
    "launchType": "ENUM_CUDA_KERNEL_LAUNCH_TYPE",
    "cacheConfig": "ENUM_CUDA_FUNC_CACHE_CONFIG",
    "sharedMemoryLimitConfig": "ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG",
    "migrationCause": "ENUM_CUDA_UNIF_MEM_MIGRATION",
    "syncType": "ENUM_CUPTI_SYNC_TYPE",
    "overheadType": "ENUM_CUPTI_OVERHEAD_TYPE",
    "eventClass": "ENUM_NSYS_EVENT_CLASS",
}
#: What the frames have already.
_SHOWN = frozenset({"start", "end", "globalTid", "globalPid", "timestamp"})
_VECTORS = {"grid": "grid", "block": "block", "cluster": "cluster"}
_PAYLOADS = ("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue")
#: Keys that are made of several columns.
_MADE = (
    "grid",
    "block",
    "cluster",
    "shared memory",
    "domain",
    "payload",
    "Input Dims",
    "Sequence number",
    "op_id",
)


class RowArgs:
    """Arguments of the rows of one frame."""

    def __init__(
        self, export: Export, parts: Sequence[Part], names: Names, domains: Domains, devices: Devices
    ) -> None:
        self._export = export
        self._tables = [part.table for part in parts]
        self._positions = [part.positions for part in parts]
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
        self._names = names
        self._domains = domains
        self._devices = devices
        self._labels: dict[str, Mapping[int, str]] = {}

    def read(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        """Return one mapping per row.

        Raises
        ------
        TraceFormatError
            When the file is gone, or not the one that was loaded any more.
        """
        out: list[dict[str, Any]] = [{} for _ in range(len(rows))]
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        for part in np.unique(part_of).tolist():
            mine = np.flatnonzero(part_of == part)
            table = self._tables[part]
            at = self._at(part, rows[mine])
            found = self._export.pick(table, list(self._export.tables[table]), at)
            for row, raw in zip(mine.tolist(), found, strict=True):
                out[row] = self._shaped(table, raw)
        return out

    def values(self, rows: NDArray[Any], key: str) -> tuple[Ints, list[Any]]:
        """Return one argument of many rows: a code per row (-1 none), and each code's value."""
        if key == "domain":
            return self._domains_at(rows)
        codes = np.full(len(rows), -1, np.int64)
        kept: list[Any] = []
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        for part in np.unique(part_of).tolist():
            if not self._may_have(self._tables[part], key):
                continue
            mine = np.flatnonzero(part_of == part)
            for row, found in zip(mine.tolist(), self.read(rows[mine]), strict=True):
                if key in found:
                    codes[row] = len(kept)
                    kept.append(found[key])
        return codes, kept

    def _domains_at(self, rows: NDArray[Any]) -> tuple[Ints, list[Any]]:
        """Return the domain of each range, read as whole columns."""
        codes = np.full(len(rows), -1, np.int64)
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        parts = [part for part in np.unique(part_of).tolist() if self._tables[part] == NVTX]
        if not parts:
            return codes, []
        table = Table(self._export, NVTX, {"domainId": "integer", "globalTid": "integer"})
        process = process_of(table.integers("globalTid"))
        pairs, inverse = combinations([process, table.integers("domainId", 0)])
        names = [self._domains.name(*pair) for pair in pairs]
        known = list(dict.fromkeys(name for name in names if name))
        of_pair = np.array([known.index(name) if name else -1 for name in names] or [-1], np.int64)
        for part in parts:
            mine = np.flatnonzero(part_of == part)
            codes[mine] = of_pair[inverse[self._at(part, rows[mine])]]
        return codes, known

    def _at(self, part: int, rows: NDArray[Any]) -> Ints:
        within: Ints = np.asarray(rows, np.int64) - self._starts[part]
        positions = self._positions[part]
        return within if positions is None else positions[within]

    def _may_have(self, table: str, key: str) -> bool:
        if key in _MADE:
            return (table == NVTX) == (key not in ("grid", "block", "cluster", "shared memory"))
        columns = self._export.tables[table]
        return key in columns or any(column in columns for column, shown in _RENAMED.items() if shown == key)

    def _label(self, column: str, number: Any) -> Any:
        table = _ENUMS[column]
        if table not in self._labels:
            self._labels[table] = labels(self._export, table)
        return self._labels[table].get(number, number) if isinstance(number, int) else number

    def _shaped(self, table: str, raw: dict[str, Any]) -> dict[str, Any]:
        if table == NVTX:
            return self._range(raw)
        if table == MEMORY:
            return self._allocation(raw)
        out: dict[str, Any] = {}
        for name, column in _VECTORS.items():
            axes = [raw.pop(f"{column}{axis}", None) for axis in "XYZ"]
            if None not in axes and any(axes):
                out[name] = axes
        shared = [raw.get(name) for name in ("staticSharedMemory", "dynamicSharedMemory")]
        if all(isinstance(each, int) for each in shared):
            out["shared memory"] = shared[0] + shared[1]  # type: ignore[operator]
        for column, value in raw.items():
            if column in _SHOWN:
                continue
            if column in _TEXT_IDS and isinstance(value, int):
                value = self._names.string(value)
            elif column in _ENUMS:
                value = self._label(column, value)
            if value is not None:
                out[_RENAMED.get(column, column)] = _plain(value)
        return out

    def _range(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Shape a range: its whole text, what torch wrote behind an operator's name, domain, payload."""
        out: dict[str, Any] = {}
        text = raw.get("text")
        if text is None and isinstance(raw.get("textId"), int):
            text = self._names.string(raw["textId"])
        if isinstance(text, str) and stem_of(text) != text:
            out |= {"text": text, **details_of(text)}
        domain, category = raw.get("domainId"), raw.get("category")
        thread = raw.get("globalTid")
        process = int(process_of(np.array([thread if isinstance(thread, int) else -1]))[0])
        if isinstance(domain, int) and (name := self._domains.name(process, domain)):
            out["domain"] = name
        if isinstance(category, int) and category:
            out["category"] = self._domains.categories.get((process, domain or 0, category), category)
        if isinstance(raw.get("color"), int):
            out["color"] = f"#{raw['color'] & 0xFFFFFFFF:08x}"
        payload = self._payload(raw)
        if payload is not None:
            out["payload"] = payload
        if isinstance(raw.get("rangeId"), int):
            out["rangeId"] = raw["rangeId"]
        return out

    def _allocation(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Shape an allocation or release as torch.profiler writes them; type 0 is the host, 1 a device."""
        size, device, kind = (raw.get(name) for name in ("bytes", "deviceId", "memKind"))
        released = str(self._label("memoryOperationType", raw.get("memoryOperationType"))).startswith(
            "Dealloc"
        )
        process = int(process_of(np.array([raw.get("globalPid", -1)]))[0])
        on_host = kind in ON_HOST
        out: dict[str, Any] = {
            "Bytes": -size if isinstance(size, int) and released else size,
            "Addr": raw.get("address"),
            "Device Type": 0 if on_host else 1,
            "Device Id": self._devices.index(process, device) if isinstance(device, int) else None,
            "memory kind": self._label("memKind", kind),
            "name": raw.get("name") or raw.get("variableName"),
            "correlation": raw.get("correlationId"),
        }
        return {key: value for key, value in out.items() if value is not None}

    def _payload(self, raw: dict[str, Any]) -> Any:
        written = raw.get("jsonText")
        if written is None and isinstance(raw.get("jsonTextId"), int):
            written = self._names.string(raw["jsonTextId"])
        if isinstance(written, str):
            found = _parsed(written)
            return written if found is None else found
        value = next((raw[name] for name in _PAYLOADS if raw.get(name) is not None), raw.get("binaryData"))
        return None if value is None else _plain(value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """Return bytes as text that shows them."""
    return value.hex() if isinstance(value, bytes) else value
