"""Recordings of rocprofv3 in the forms that it has: JSON, and rocpd databases of schema 3 and 4.

The layout is that of ``generateJSON.cpp``, ``generateRocpd.cpp`` and ``rocpd_tables.sql`` of rocprofiler-sdk,
without columns that only describe the machine. Schema 4 keeps times and tracks in tables of their own.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["FORMS", "Process", "write", "write_database", "write_json"]

FORMS = ("json", "3", "4")
GPUS = (101, 102)
CPU = 100

#: Kind of record -> its operations, numbered as the tool numbers them.
_OPERATIONS = {
    "NONE": [],
    "HSA_CORE_API": ["hsa_init", "hsa_signal_store_screlease"],
    "HIP_RUNTIME_API": ["hipMalloc", "hipLaunchKernel", "hipGraphLaunch", "hipMemcpyAsync", "hipFree"],
    "MARKER_CORE_RANGE_API": ["roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA"],
    "MEMORY_COPY": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST"],
    "KERNEL_DISPATCH": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"],
    "MEMORY_ALLOCATION": ["MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_FREE"],
    "SCRATCH_MEMORY": ["SCRATCH_MEMORY_NONE", "SCRATCH_MEMORY_ALLOC", "SCRATCH_MEMORY_FREE"],
}
_KINDS = list(_OPERATIONS)
_APIS = {"HSA_CORE_API": "hsa_api", "HIP_RUNTIME_API": "hip_api", "MARKER_CORE_RANGE_API": "marker_api"}

_EVENT = "id category_id stack_id parent_stack_id correlation_id call_stack:t line_info:t extdata:t"
_INFO = "id guid:t nid pid"
_SIZES = " ".join(f"{what}_size_{axis}" for what in ("workgroup", "grid") for axis in "xyz")
_V3 = "nid pid tid"
_SCHEMAS = {
    "3": {
        "metadata": "id tag:t value:t",
        "string": "id guid:t string:t",
        "info_node": "id guid:t hash machine_id:t system_name:t hostname:t",
        "info_process": "id guid:t nid ppid pid init fini start end command:t environment:t extdata:t",
        "info_thread": "id guid:t nid ppid pid tid name:t start end extdata:t",
        "info_agent": f"{_INFO} type:t absolute_index type_index name:t product_name:t extdata:t",
        "info_queue": f"{_INFO} name:t extdata:t",
        "info_stream": f"{_INFO} name:t extdata:t",
        "info_pmc": f"{_INFO} agent_id name:t symbol:t units:t",
        "info_kernel_symbol": f"{_INFO} code_object_id kernel_name:t display_name:t",
        "track": "id guid:t nid pid tid name_id extdata:t",
        "event": _EVENT,
        "arg": "id guid:t event_id position type:t name:t value:t extdata:t",
        "pmc_event": "id guid:t event_id pmc_id value:r",
        "region": f"id guid:t {_V3} start end name_id event_id extdata:t",
        "sample": "id guid:t track_id timestamp event_id extdata:t",
        "kernel_dispatch": f"id guid:t {_V3} agent_id kernel_id dispatch_id queue_id stream_id start end "
        f"private_segment_size group_segment_size {_SIZES} region_name_id event_id extdata:t",
        "memory_copy": f"id guid:t {_V3} start end name_id dst_agent_id dst_address src_agent_id src_address "
        "size queue_id stream_id region_name_id event_id extdata:t",
        "memory_allocate": f"id guid:t {_V3} agent_id type:t level:t start end address size queue_id "
        "stream_id event_id extdata:t",
    }
}
_SCHEMAS["4"] = {
    **_SCHEMAS["3"],
    "info_category": "id guid:t name:t extdata:t",
    "timestamp": "id guid:t value phase track_id",
    "track": "id guid:t nid ppid pid tid agent_id queue_id stream_id name_id extdata:t",
    "event": "id guid:t category_id stack_id parent_stack_id correlation_id extdata:t",
    "region": "id guid:t track_id name_id start_id end_id event_id extdata:t",
    "sample": "id guid:t track_id name_id timestamp_id event_id extdata:t",
    "kernel_dispatch": "id guid:t track_id kernel_id dispatch_id start_id end_id private_segment_size "
    f"group_segment_size {_SIZES} region_name_id event_id extdata:t",
    "memory_copy": "id guid:t track_id start_id end_id name_id dst_agent_id dst_address src_agent_id "
    "src_address size region_name_id event_id extdata:t",
    "memory_allocate": "id guid:t track_id type:t level:t start_id end_id name_id address size "
    "region_name_id event_id extdata:t",
}


@dataclass
class Process:
    """A process in the making; ids of launches count within it."""

    pid: int = 908
    command: str = "/opt/bin/train.py --secret 1"
    calls: list[dict[str, Any]] = field(default_factory=list)
    kernels: list[dict[str, Any]] = field(default_factory=list)
    copies: list[dict[str, Any]] = field(default_factory=list)
    allocations: list[dict[str, Any]] = field(default_factory=list)
    counters: list[dict[str, Any]] = field(default_factory=list)

    def call(self, name: str, start: int, end: int, id: int = 0, tid: int = 0, **more: Any) -> None:
        """Add a call of HIP or HSA; ``args`` are pairs of a name and a value."""
        kind = next(kind for kind, names in _OPERATIONS.items() if name in names)
        self.calls.append(
            {"kind": kind, "name": name, "start": start, "end": end, "id": id, "tid": tid, **more}
        )

    def marker(
        self, text: str, start: int, end: int, id: int = 0, tid: int = 0, name: str = "roctxThreadRangeA"
    ) -> None:
        """Add a roctx range, or a mark."""
        self.call(name, start, end, id, tid, message=text)

    def kernel(self, name: str, start: int, end: int, id: int = 0, tid: int = 0, **more: Any) -> None:
        """Add a kernel: gpu (0 or 1), queue, stream, grid (in threads) and block."""
        given = {"gpu": 0, "queue": 16, "stream": 0, "grid": (512, 2, 1), "block": (256, 1, 1), **more}
        self.kernels.append({"name": name, "start": start, "end": end, "id": id, "tid": tid, **given})

    def copy(self, to_device: bool, start: int, end: int, id: int = 0, tid: int = 0, **more: Any) -> None:
        """Add a copy between host and GPU."""
        given = {"gpu": 0, "stream": 0, "bytes": 4096, **more}
        self.copies.append({"in": to_device, "start": start, "end": end, "id": id, "tid": tid, **given})

    def memory(
        self,
        free: bool,
        start: int,
        end: int,
        address: int,
        size: int = 0,
        gpu: int | None = 0,
        scratch: bool = False,
        id: int = 0,
        tid: int = 0,
    ) -> None:
        """Add an allocation or a release."""
        given = {"address": address, "size": size, "gpu": gpu, "scratch": scratch, "tid": tid}
        self.allocations.append({"free": free, "start": start, "end": end, "id": id, **given})

    def counter(self, kernel: int, name: str, value: float) -> None:
        """Add a value that was counted during a kernel, by its position."""
        self.counters.append({"kernel": kernel, "name": name, "value": value})


def _record(kind: str, name: str, found: dict[str, Any]) -> dict[str, Any]:
    number = _KINDS.index(kind)
    return {
        "size": 96,
        "kind": number,
        "operation": _OPERATIONS[kind].index(name),
        "thread_id": found["tid"],
        "correlation_id": {"internal": found["id"], "external": 0, "ancestor": 0},
        "start_timestamp": found["start"],
        "end_timestamp": found["end"],
    }


def _kernel_ids(process: Process) -> dict[str, int]:
    return {name: at + 1 for at, name in enumerate(dict.fromkeys(k["name"] for k in process.kernels))}


def _info(process: Process, at: int) -> dict[str, Any]:
    kernel = process.kernels[at]
    return {
        "size": 72,
        "agent_id": {"handle": GPUS[kernel["gpu"]]},
        "queue_id": {"handle": kernel["queue"]},
        "kernel_id": _kernel_ids(process)[kernel["name"]],
        "dispatch_id": at + 1,
        "private_segment_size": 0,
        "group_segment_size": 64,
        "workgroup_size": dict(zip("xyz", kernel["block"], strict=True)),
        "grid_size": dict(zip("xyz", kernel["grid"], strict=True)),
    }


def tool_data(process: Process) -> dict[str, Any]:
    """Return one process as the JSON has it."""
    buffers: dict[str, list[Any]] = {
        name: []
        for name in ("kernel_dispatch", "hip_api", "hsa_api", "marker_api", "rccl_api", "memory_copy")
    }
    buffers |= {"memory_allocation": [], "scratch_memory": [], "pc_sample_host_trap": []}
    messages = []
    for call in process.calls:
        record = _record(call["kind"], call["name"], call)
        if "args" in call:
            record["args"] = [{"type": "int", "name": name, "value": value} for name, value in call["args"]]
        if "message" in call:
            messages.append({"key": call["id"], "value": call["message"]})
        buffers[_APIS[call["kind"]]].append(record)
    for at, kernel in enumerate(process.kernels):
        record = _record("KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE", kernel)
        buffers["kernel_dispatch"].append(
            {**record, "dispatch_info": _info(process, at), "stream_id": {"handle": kernel["stream"]}}
        )
    for copy in process.copies:
        way = "HOST_TO_DEVICE" if copy["in"] else "DEVICE_TO_HOST"
        sides = (GPUS[copy["gpu"]], CPU) if copy["in"] else (CPU, GPUS[copy["gpu"]])
        buffers["memory_copy"].append(
            {
                **_record("MEMORY_COPY", f"MEMORY_COPY_{way}", copy),
                "dst_agent_id": {"handle": sides[0]},
                "src_agent_id": {"handle": sides[1]},
                "bytes": copy["bytes"],
                "stream_id": {"handle": copy["stream"]},
            }
        )
    for found in process.allocations:
        kind = "SCRATCH_MEMORY" if found["scratch"] else "MEMORY_ALLOCATION"
        what = "FREE" if found["free"] else "ALLOC" if found["scratch"] else "ALLOCATE"
        agent = 0 if found["free"] else CPU if found["gpu"] is None else GPUS[found["gpu"]]
        buffers[kind.lower()].append(
            {
                **_record(kind, f"{kind}_{what}", found),
                "agent_id": {"handle": agent},
                "address": hex(found["address"]),
                "allocation_size": found["size"],
            }
        )
    names = list(dict.fromkeys(entry["name"] for entry in process.counters))
    counted = []
    for at in dict.fromkeys(entry["kernel"] for entry in process.counters):
        kernel = process.kernels[at]
        counted.append(
            {
                "thread_id": kernel["tid"],
                "dispatch_data": {
                    "correlation_id": {"internal": kernel["id"], "external": 0},
                    "start_timestamp": kernel["start"],
                    "end_timestamp": kernel["end"],
                    "dispatch_info": _info(process, at),
                },
                "records": [
                    {"counter_id": {"handle": 7 + names.index(entry["name"])}, "value": entry["value"]}
                    for entry in process.counters
                    if entry["kernel"] == at
                ],
            }
        )
    agents = [{"id": {"handle": CPU}, "type": 1, "name": "EPYC", "logical_node_type_id": 0}]
    agents += [
        {
            "id": {"handle": handle},
            "type": 2,
            "name": "gfx942",
            "product_name": "AMD Instinct MI300X",
            "cu_count": 304,
            "logical_node_type_id": at,
            "mem_banks": [{"size_in_bytes": 1 << 30}],
        }
        for at, handle in enumerate(GPUS)
    ]
    return {
        "metadata": {
            "node": {"hostname": "node1"},
            "pid": process.pid,
            "init_time": 1,
            "fini_time": 10**9,
            "command": process.command.split(" "),
        },
        "agents": agents,
        "counters": [{"id": {"handle": 7 + at}, "name": name} for at, name in enumerate(names)],
        "strings": {
            "buffer_records": [{"kind": kind, "operations": names} for kind, names in _OPERATIONS.items()],
            "marker_api": messages,
        },
        "kernel_symbols": [
            {"kernel_id": number, "kernel_name": f"_Z{name}.kd", "formatted_kernel_name": name}
            for name, number in _kernel_ids(process).items()
        ],
        "callback_records": {"counter_collection": counted},
        "buffer_records": buffers,
    }


def write_json(path: Path, processes: Iterable[Process]) -> Path:
    """Write the JSON of one process or several."""
    path.write_text(
        json.dumps({"rocprofiler-sdk-tool": [tool_data(process) for process in processes]}, indent=1)
    )
    return path


class _Run:
    """The tables of one run."""

    def __init__(self, schema: str, guid: str) -> None:
        self.schema, self.guid = schema, guid
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in _SCHEMAS[schema]}
        self._strings: dict[str, int] = {}
        self._tracks: dict[tuple[Any, ...], int] = {}

    def add(self, table: str, **values: Any) -> int:
        number = values.setdefault("id", len(self.rows[table]) + 1)
        values.setdefault("guid", self.guid)
        values.setdefault("extdata", "{}")
        self.rows[table].append(values)
        return int(number)

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = self.add("string", id=3 * len(self._strings) + 2, string=text)
        return self._strings[text]

    def event(self, category: str, found: dict[str, Any], extra: str = "{}") -> int:
        number = self.string(category)
        if self.schema == "4":
            known = {row["name"]: row["id"] for row in self.rows["info_category"]}
            number = known.get(category) or self.add("info_category", name=category)
        return self.add(
            "event",
            category_id=number,
            stack_id=found["id"],
            parent_stack_id=0,
            correlation_id=0,
            call_stack="{}",
            line_info="{}",
            extdata=extra,
        )

    def track(self, **place: Any) -> int:
        key = tuple(sorted(place.items(), key=str))
        if key not in self._tracks:
            self._tracks[key] = self.add("track", **place)
        return self._tracks[key]

    def timed(self, table: str, found: dict[str, Any], place: dict[str, Any], **values: Any) -> int:
        """Add a row with its times and its place, wherever the schema has these."""
        if self.schema == "3":
            return self.add(table, start=found["start"], end=found["end"], **place, **values)
        times = {f"{side}_id": self.add("timestamp", value=found[side], phase=1) for side in ("start", "end")}
        return self.add(table, track_id=self.track(**place), **times, **values)


def _fill(run: _Run, process: Process) -> None:
    pid, node = process.pid, {"nid": 1}
    run.add("metadata", tag="schema_version", value="3" if run.schema == "3" else "4.0.0")
    run.add("info_node", hash=1, machine_id="m", system_name="Linux", hostname="node1")
    run.add(
        "info_process", id=pid, **node, ppid=1, pid=pid, command=process.command, environment='{"TOKEN": "x"}'
    )
    for tid in {
        found["tid"] for found in (*process.calls, *process.kernels, *process.copies, *process.allocations)
    }:
        run.add("info_thread", id=tid, **node, pid=pid, tid=tid)
    run.add("info_agent", id=0, **node, pid=pid, type="CPU", absolute_index=0, type_index=0, name="EPYC")
    for at in range(len(GPUS)):
        run.add(
            "info_agent",
            id=at + 1,
            **node,
            pid=pid,
            type="GPU",
            absolute_index=at + 1,
            type_index=at,
            name="gfx942",
            product_name="AMD Instinct MI300X",
            extdata=json.dumps({"cu_count": 304, "mem_banks": [{"size_in_bytes": 1 << 30}]}),
        )
    for name, number in _kernel_ids(process).items():
        run.add(
            "info_kernel_symbol", id=number, **node, pid=pid, kernel_name=f"_Z{name}.kd", display_name=name
        )
    place = {**node, "pid": pid}
    for call in process.calls:
        message = json.dumps({"message": call["message"]}) if "message" in call else "{}"
        event = run.event(call["kind"], call, message)
        for position, (name, value) in enumerate(call.get("args", ())):
            run.add("arg", event_id=event, position=position, type="int", name=name, value=value)
        name_id = run.string(call["name"])
        on_thread = {**place, "tid": call["tid"]}
        if call["start"] != call["end"]:
            run.timed("region", call, on_thread, name_id=name_id, event_id=event)
        elif run.schema == "3":
            track = run.track(**on_thread, name_id=run.string(call["kind"]))
            run.add("sample", track_id=track, timestamp=call["start"], event_id=event)
        else:
            when = run.add("timestamp", value=call["start"], phase=0)
            run.add(
                "sample", track_id=run.track(**on_thread), name_id=name_id, timestamp_id=when, event_id=event
            )
    events = []
    for at, kernel in enumerate(process.kernels):
        events.append(run.event("KERNEL_DISPATCH", kernel))
        sizes = {
            f"{what}_size_{axis}": value
            for what, values in (("workgroup", kernel["block"]), ("grid", kernel["grid"]))
            for axis, value in zip("xyz", values, strict=True)
        }
        run.timed(
            "kernel_dispatch",
            kernel,
            {
                **place,
                "tid": kernel["tid"],
                "agent_id": kernel["gpu"] + 1,
                "queue_id": kernel["queue"],
                "stream_id": kernel["stream"],
            },
            kernel_id=_kernel_ids(process)[kernel["name"]],
            dispatch_id=at + 1,
            private_segment_size=0,
            group_segment_size=64,
            event_id=events[-1],
            **sizes,
        )
    for copy in process.copies:
        way = "HOST_TO_DEVICE" if copy["in"] else "DEVICE_TO_HOST"
        sides = (copy["gpu"] + 1, 0) if copy["in"] else (0, copy["gpu"] + 1)
        run.timed(
            "memory_copy",
            copy,
            {**place, "tid": copy["tid"], "stream_id": copy["stream"]},
            name_id=run.string(f"MEMORY_COPY_{way}"),
            dst_agent_id=sides[0],
            src_agent_id=sides[1],
            size=copy["bytes"],
            event_id=run.event("MEMORY_COPY", copy),
        )
    for found in process.allocations:
        agent = None if found["free"] else 0 if found["gpu"] is None else found["gpu"] + 1
        run.timed(
            "memory_allocate",
            found,
            {**place, "tid": found["tid"], "agent_id": agent},
            type="FREE" if found["free"] else "ALLOC",
            level="SCRATCH" if found["scratch"] else "REAL",
            address=found["address"],
            size=found["size"],
            event_id=run.event("MEMORY_ALLOCATION", found),
        )
    names = list(dict.fromkeys(entry["name"] for entry in process.counters))
    for at, name in enumerate(names):
        run.add("info_pmc", id=7 + at, **node, pid=pid, agent_id=1, name=name, symbol=name, units="")
    for entry in process.counters:
        run.add(
            "pmc_event",
            event_id=events[entry["kernel"]],
            pmc_id=7 + names.index(entry["name"]),
            value=entry["value"],
        )


def write_database(
    path: Path, processes: Iterable[Process], schema: str = "3", *, page_size: int = 4096
) -> Path:
    """Write a database; several processes are several runs, as merged files have them."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA page_size={page_size}")
    runs = []
    for at, process in enumerate(processes):
        guid = f"0198a{at:03x}-7b21-7c3d-8e4f-a1b2c3d4e5f6"
        run = _Run(schema, guid)
        _fill(run, process)
        runs.append(run)
        suffix = "_" + guid.replace("-", "_")
        for table, columns in _SCHEMAS[schema].items():
            names = [column.split(":")[0] for column in columns.split()]
            kinds = {"t": "TEXT", "r": "REAL"}
            declared = [
                f'"{column.split(":")[0]}" {kinds.get(column.partition(":")[2], "INTEGER")}'
                + (" NOT NULL PRIMARY KEY AUTOINCREMENT" if column == "id" else "")
                for column in columns.split()
            ]
            connection.execute(f"CREATE TABLE `rocpd_{table}{suffix}` ({', '.join(declared)})")
            connection.executemany(
                f"INSERT INTO `rocpd_{table}{suffix}` VALUES ({', '.join('?' * len(names))})",
                [[row.get(name) for name in names] for row in run.rows[table]],
            )
            if at == 0:
                connection.execute(f"CREATE VIEW `rocpd_{table}` AS SELECT * FROM `rocpd_{table}{suffix}`")
    connection.commit()
    path.write_bytes(connection.serialize())
    connection.close()
    return path


def write(form: str, folder: Path, processes: Iterable[Process]) -> Path:
    """Write a recording in one of `FORMS`."""
    if form == "json":
        return write_json(folder / "908_results.json", processes)
    return write_database(folder / "908_results.db", processes, form)
