"""Exports of Nsight Systems of several years, written with Python's own sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["AGES", "NsysExport", "global_tid", "two_processes"]

_GPU = "start end deviceId contextId streamId correlationId"
_GRID = "registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory"

_CALL = "start end eventClass globalTid correlationId nameId"
_NAMES = "demangledName shortName mangledName"
_NVTX = "start end eventType rangeId category color text:t globalTid endGlobalTid textId domainId"

#: Age of the schema -> table -> columns. TEXT columns end in ":t", REAL ones in ":r", "!" is the primary key.
_SCHEMAS: dict[str, dict[str, str]] = {
    "2020": {
        "StringIds": "id! value:t",
        "CUPTI_ACTIVITY_KIND_KERNEL": f"{_GPU} demangledName shortName {_GRID}",
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_GPU} bytes copyKind srcKind dstKind",
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{_GPU} value bytes memKind",
        "CUPTI_ACTIVITY_KIND_RUNTIME": f"{_CALL} returnValue",
        "NVTX_EVENTS": _NVTX,
        "ThreadNames": "nameId priority globalTid",
        "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:t localTime:t",
    },
    "2023": {
        "StringIds": "id! value:t",
        "CUPTI_ACTIVITY_KIND_KERNEL": f"{_GPU} globalPid {_NAMES} launchType {_GRID} graphNodeId",
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_GPU} globalPid bytes copyKind srcKind dstKind graphNodeId",
        "CUPTI_ACTIVITY_KIND_MEMSET": f"{_GPU} globalPid value bytes memKind graphNodeId",
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_GPU} globalPid graphId graphExecId",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_GPU} globalPid syncType eventId",
        "CUPTI_ACTIVITY_KIND_RUNTIME": f"{_CALL} returnValue callchainId",
        "NVTX_EVENTS": f"{_NVTX} uint64Value int64Value doubleValue:r uint32Value int32Value floatValue:r "
        "jsonTextId jsonText:t",
        "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel callchainId",
        "PROFILER_OVERHEAD": "start end globalTid nameId overheadType",
        "CUDA_GRAPH_NODE_EVENTS": "start end eventClass globalTid nameId graphNodeId originalGraphNodeId",
        "CUDA_GPU_MEMORY_USAGE_EVENTS": "start globalPid deviceId contextId address pc bytes memKind "
        "memoryOperationType name:t correlationId",
        "GPU_METRICS": "timestamp typeId metricId value",
        "TARGET_INFO_GPU_METRICS": "typeId typeName:t metricId metricName:t",
        "SCHED_EVENTS": "start cpu isSchedIn globalTid",
        "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text:t globalPid",
        "ThreadNames": "nameId priority globalTid",
        "PROCESSES": "globalPid pid name:t",
        "TARGET_INFO_GPU": "vmId id name:t totalMemory smCount computeMajor computeMinor",
        "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
        "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName:t name:t nameEnum value:t",
        "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:t localTime:t",
        "META_DATA_EXPORT": "name:t value:t",
        "ENUM_NSYS_EVENT_TYPE": "id! name:t label:t",
        "ENUM_CUDA_MEMCPY_OPER": "id! name:t label:t",
        "ENUM_CUDA_MEM_KIND": "id! name:t label:t",
    },
}
_SCHEMAS["2026"] = {
    **_SCHEMAS["2023"],
    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId contextId greenContextId streamId correlationId "
    f"globalPid {_NAMES} launchType cacheConfig {_GRID} graphNodeId graphId clusterX clusterY clusterZ "
    "tensorSizeMinusOneElements:t",
    "CUDNN_EVENTS": "start end eventClass globalTid nameId",
    "NVTX_PAYLOAD_SCHEMAS": "domainId schemaId name:t",
}
AGES = tuple(_SCHEMAS)

_ENUMS = {
    "ENUM_NSYS_EVENT_TYPE": {
        33: ("NvtxCategory", ""),
        34: ("NvtxMark", ""),
        59: ("NvtxPushPopRange", ""),
        60: ("NvtxStartEndRange", ""),
        75: ("NvtxDomainCreate", ""),
    },
    "ENUM_CUDA_MEMCPY_OPER": {
        1: ("CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        2: ("CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        8: ("CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
    },
    "ENUM_CUDA_MEM_KIND": {
        0: ("CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        1: ("CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        2: ("CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
    },
}


def global_tid(pid: int, tid: int = 0, machine: int = 1) -> int:
    """Return a thread's number in the whole recording; of thread 0 the process's."""
    return machine << 48 | pid << 24 | tid


class NsysExport:
    """An export in the making: rows of tables, strings by their text.

    Parameters
    ----------
    age
        One of `AGES`: which tables there are, and with which columns.
    """

    def __init__(self, age: str = "2026") -> None:
        self._columns = {
            table: [column.split(":")[0].rstrip("!") for column in text.split()]
            for table, text in _SCHEMAS[age].items()
        }
        self._declared = _SCHEMAS[age]
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        for table, values in _ENUMS.items():
            if table in self._columns:
                for number, (name, label) in values.items():
                    self.add(table, id=number, name=name, label=label)

    def string(self, text: str) -> int:
        """Return the number of a string; numbers have gaps, as the tool's have."""
        return self._strings.setdefault(text, 3 * len(self._strings) + 1)

    def add(self, table: str, **values: Any) -> None:
        """Add a row. Columns that end in "Name" or "nameId" take texts; what the age lacks is left out."""
        for key, value in values.items():
            if isinstance(value, str) and key in (
                "demangledName",
                "shortName",
                "mangledName",
                "nameId",
                "textId",
            ):
                values[key] = self.string(value)
        if table in self._columns:
            self._rows.setdefault(table, []).append(values)

    def write(self, path: Path, *, page_size: int = 4096) -> Path:
        """Write the database; tables without a row are left out, as the tool does."""
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA page_size={page_size}")
        if self._strings:
            self._rows["StringIds"] = [
                {"id": number, "value": text} for text, number in self._strings.items()
            ]
        for table, rows in self._rows.items():
            connection.execute(f"CREATE TABLE {table} ({self._definition(table)})")
            names = self._columns[table]
            marks = ", ".join("?" * len(names))
            connection.executemany(
                f"INSERT INTO {table} VALUES ({marks})", ([row.get(name) for name in names] for row in rows)
            )
        connection.commit()
        connection.close()
        return path

    def _definition(self, table: str) -> str:
        """Return the columns as the tool declares them, comments and all."""
        out: list[str] = []
        for text in self._declared[table].split():
            name, _, kind = text.partition(":")
            declared = {"t": "TEXT", "r": "REAL"}.get(kind, "INTEGER")
            key = "   NOT NULL   PRIMARY KEY" if name.endswith("!") else ""
            out.append(f"{name.rstrip('!'):<27} {declared}{key}")
        lines = [
            f"    {line}{',' if at + 1 < len(out) else ''}   -- as the tool says (ns)."
            for at, line in enumerate(out)
        ]
        return "\n" + "\n".join(lines) + "\n"


def two_processes(age: str = "2026", pids: Iterable[int] = (100, 200)) -> NsysExport:
    """Return an export of processes that use the same correlation ids: each a range, a kernel and a copy.

    Of the n-th process (from 0) everything begins n * 50 ns later, and its kernel runs 1000 + n ns.
    """
    export = NsysExport(age)
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    for number, pid in enumerate(pids):
        at, thread = number * 50, global_tid(pid, pid)
        process = global_tid(pid)
        export.add("PROCESSES", globalPid=process, pid=pid, name=f"worker{number}")
        export.add("ThreadNames", nameId=f"main{number}", priority=20, globalTid=thread)
        export.add("TARGET_INFO_CUDA_DEVICE", gpuId=number, cudaId=0, pid=pid)
        export.add(
            "NVTX_EVENTS",
            start=at + 10,
            end=at + 500,
            eventType=59,
            text="step",
            globalTid=thread,
            domainId=0,
        )
        export.add(
            "NVTX_EVENTS",
            start=at + 20,
            end=at + 300,
            eventType=59,
            text="aten::mm, seq = 7, op_id = 12, sizes = [[2, 3], [3, 4]]",
            globalTid=thread,
            domainId=0,
        )
        for correlation, name, begin in (
            (5, "cudaLaunchKernel_v7000", 30),
            (6, "cudaMemcpyAsync_v3020", 200),
        ):
            export.add(
                "CUPTI_ACTIVITY_KIND_RUNTIME",
                start=at + begin,
                end=at + begin + 40,
                eventClass=0,
                globalTid=thread,
                correlationId=correlation,
                nameId=name,
                returnValue=0,
            )
        place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": process}
        export.add(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            start=at + 1000,
            end=at + 2000 + number,
            correlationId=5,
            demangledName=f"gemm<{number}>(float*)",
            shortName="gemm",
            registersPerThread=32,
            gridX=8,
            gridY=2,
            gridZ=1,
            blockX=128,
            blockY=1,
            blockZ=1,
            staticSharedMemory=16,
            dynamicSharedMemory=1024,
            **place,
        )
        export.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            start=at + 3000,
            end=at + 3100,
            correlationId=6,
            bytes=4096,
            copyKind=1,
            srcKind=1,
            dstKind=2,
            **place,
        )
    return export
