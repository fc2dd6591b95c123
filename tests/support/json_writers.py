"""One step in the trace-event dialect of every writer: 30 us of host work and one kernel of 10 us.

Rows that repeat or sum up what other rows hold are in the files of those who write such: they must not count.
"""

from __future__ import annotations

import json
from typing import Any

Event = dict[str, Any]


def named(process: object, name: str, *threads: tuple[object, str], labels: str = "") -> list[Event]:
    """Metadata of a process and its threads."""
    out = [{"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}]
    if labels:
        out.append(
            {"ph": "M", "name": "process_labels", "pid": process, "tid": 0, "args": {"labels": labels}}
        )
    for thread, label in threads:
        out.append({"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": label}})
    return out


def span(name: str, process: object, thread: object, ts: float, dur: float, **more: Any) -> Event:
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": ts, "dur": dur, **more}


def _document(*events: Event, **top: Any) -> bytes:
    return json.dumps({**top, "traceEvents": list(events)}).encode()


KINETO = _document(
    *named(83, "python"),
    span("aten::mm", 83, 83, 100, 30, cat="cpu_op", args={"External id": 1}),
    span("cudaLaunchKernel", 83, 83, 110, 5, cat="cuda_runtime", args={"correlation": 9}),
    span("gemm", 0, 7, 140, 10, cat="kernel", args={"correlation": 9, "device": 0, "stream": 7}),
    schemaVersion=1,
)

# an open list of begins and ends, as Chrome may leave it
CHROME = json.dumps(
    [
        {"ph": "B", "name": "task", "pid": 1, "tid": 1, "ts": 100},
        {"ph": "B", "name": "paint", "pid": 1, "tid": 1, "ts": 110},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 115},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 130},
    ]
)[:-1].encode()

TENSORFLOW_1 = _document(
    *named(0, "/job:localhost/replica:0/task:0/device:GPU:0 Compute"),
    *named(1, "/device:GPU:0/stream:13 Compute"),
    *named(2, "/device:GPU:0/stream:all Compute"),
    span("MatMul", 0, 0, 100, 30, cat="Op", args={"name": "MatMul", "op": "MatMul"}),
    span("MatMul", 1, 0, 140, 10, cat="Op", args={"name": "MatMul", "op": "MatMul"}),
    span("MatMul", 2, 0, 140, 10, cat="Op", args={"name": "MatMul", "op": "MatMul"}),
)

XLA = _document(
    *named(1, "/device:GPU:0", (13, "Stream #13(Compute)"), (14, "XLA Ops"), (15, "Steps")),
    *named(701, "/host:CPU", (1, "python")),
    span("PjitFunction(step)", 701, 1, 100, 30),
    span("fusion.1", 1, 13, 140, 10, args={"hlo_op": "fusion.1"}),
    span("fusion.1", 1, 14, 140, 10),
    span("0", 1, 15, 100, 60),
    displayTimeUnit="ns",
)

ASCEND = _document(
    *named(10, "CANN", (1, "Thread 1"), labels="CPU"),
    *named(20, "Ascend Hardware", (3, "Stream 3"), labels="NPU"),
    *named(30, "Overlap Analysis", (0, "Computing"), labels="NPU"),
    span("aclnnMatmul", 10, 1, 100, 30),
    span("MatMulV2", 20, 3, 140, 10),
    span("Computing", 30, 0, 140, 10),
)

NSYS2JSON = _document(
    span("cudaLaunchKernel", "Device 0", "CUDA API Thread 5", 100, 30, cat="cuda_api"),
    span("gemm", "Device 0", "Stream 7", 140, 10, cat="cuda"),
    span("step", "Device 0", "NVTX Kernel Thread 5", 140, 10, cat="nvtx-kernel"),
)

ROCPROF = _document(
    *named(2, "CPU HIP API"),
    *named(6, "GPU0"),
    span("hipLaunchKernel", 2, 83, 100, 30),
    span("Cijk_Ailk", 6, 0, 140, 10),
)

VIZTRACER = _document(
    *named(83, "MainProcess", (83, "MainThread")),
    span("main (a.py:1)", 83, 83, 100, 30, cat="FEE"),
    span("step (a.py:5)", 83, 83, 105, 12, cat="FEE"),
    viztracer_metadata={"version": "1.0.0", "overflow": False},
)

#: writer -> (file, (name, us) of the kernel where the writer knows of devices)
DIALECTS: dict[str, tuple[bytes, tuple[str, int] | None]] = {
    "kineto": (KINETO, ("gemm", 10)),
    "chrome": (CHROME, None),
    "tensorflow 1": (TENSORFLOW_1, ("MatMul", 10)),
    "xla": (XLA, ("fusion.1", 10)),
    "ascend": (ASCEND, ("MatMulV2", 10)),
    "nsys2json": (NSYS2JSON, ("gemm", 10)),
    "rocprof": (ROCPROF, ("Cijk_Ailk", 10)),
    "viztracer": (VIZTRACER, None),
}


def merged(*marks: str) -> bytes:
    """Several ranks in one file: all count their ids from the same numbers, each marks its processes."""
    events: list[Event] = []
    for number, mark in enumerate(marks):
        host, device = f"[{mark}] 83", f"[{mark}] 0"
        events += [
            *named(host, "python"),
            span("aten::mm", host, 83, 100 + number, 30, cat="cpu_op", args={"External id": 7}),
            span("cudaLaunchKernel", host, 83, 110 + number, 5, cat="cuda_runtime",
                 args={"correlation": 5, "External id": 7}),
            span(f"gemm of {mark}", device, 7, 140 + number, 10, cat="kernel",
                 args={"correlation": 5, "External id": 7, "device": 0, "stream": 7}),
        ]  # fmt: skip
    return _document(*events, schemaVersion=1)
