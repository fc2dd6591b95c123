"""Writers that tell device work by names of processes and threads, one small file each.

The files are written by hand after each writer's source; times are whole microseconds, so that sums are
plain arithmetic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_events import load_events


def named(pid: Any, process: str, tid: Any = 0, thread: str | None = None, labels: str = "") -> list[Any]:
    out = [{"ph": "M", "name": "process_name", "pid": pid, "tid": tid, "args": {"name": process}}]
    if labels:
        out.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": tid, "args": {"labels": labels}})
    if thread is not None:
        out.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": thread}})
    return out


def event(pid: Any, tid: Any, name: str, ts: float, dur: float, cat: str | None = None) -> dict[str, Any]:
    given = {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur}
    return given if cat is None else {**given, "cat": cat}


#: writer -> events, and (kind, domain, timing, ns) of each span in the file's order
WRITERS: dict[str, tuple[list[Any], list[tuple[str, str, str, int]]]] = {
    "torch before Kineto": (
        [
            event("CPU functions", 1, "addmm", 10, 5),
            event("CUDA functions", 1, "volta_sgemm_128x64_tn", 12, 30),
        ],
        [("operator", "host", "measured", 5000), ("kernel", "gpu", "measured", 30000)],
    ),
    "nvprof2json": (
        [
            event("[0:1] Overview", "Compute", "sgemm", 10, 7, "cuda"),
            event("[0:1] Overview", "MemCpy (HtoD)", "Memcpy HtoD", 20, 3, "cuda"),
            event("[0:1] Overview", "Memset", "Memset", 30, 1, "cuda"),
        ],
        [
            ("kernel", "gpu", "measured", 7000),
            ("memcpy", "gpu", "measured", 3000),
            ("memset", "gpu", "measured", 1000),
        ],
    ),
    "Paddle": (
        [
            *named(1, "Process 77 (C++)"),
            *named(2, "Deivce 0 (Tesla V100)", 7, "stream 7"),
            event(1, 1, "matmul", 10, 8, "Operator"),
            event(1, 1, "cudaLaunchKernel", 12, 2, "CudaRuntime"),
            event(2, 7, "volta_sgemm", 15, 6),
        ],
        [
            ("operator", "host", "measured", 8000),
            ("runtime", "host", "measured", 2000),
            ("kernel", "gpu", "measured", 6000),
        ],
    ),
    "ONNX Runtime": (
        [
            event(5, 6, "model_run", 0, 100, "Session"),
            event(5, 6, "conv_kernel_time", 10, 40, "Node"),
            event(5, 6, "cudnn::winograd", 20, 25, "Kernel"),
        ],
        [
            ("method", "host", "measured", 100_000),
            ("operator", "host", "measured", 40_000),
            ("kernel", "gpu", "measured", 25_000),
        ],
    ),
    "unitrace": (
        [
            *named(1, "HOST<node1>[77]"),
            *named(2, "DEVICE<node1>[77]", 3, "L0 queue"),
            event(1, 1, "zeCommandListAppendLaunchKernel", 1, 2, "cpu_op"),
            event(2, 3, "gemm[SIMD32]", 5, 9, "gpu_op"),
            event(2, 3, "zeCommandListAppendMemoryCopy(M2D)", 20, 4),
        ],
        [
            ("operator", "host", "measured", 2000),
            ("kernel", "gpu", "measured", 9000),
            ("kernel", "gpu", "measured", 4000),
        ],
    ),
    "libkineto without categories": (
        [
            *named(77, "python", 77, "thread 77 (python)", labels="CPU"),
            *named(0, "python", 7, "stream 7", labels="GPU 0"),
            event(77, 77, "aten::mm", 1, 4),
            event(0, 7, "sgemm", 3, 6),
        ],
        [("other", "host", "measured", 4000), ("kernel", "gpu", "measured", 6000)],
    ),
    "Proton inside a kernel": (
        [event("matmul Core0 CTA0", "warp 0 ", "load", 1, 2, "matmul")],
        [("annotation", "gpu", "measured", 2000)],
    ),
    "VizTracer": (
        [event(9, 9, "f (a.py:1)", 1, 3, "FEE")],
        [("python", "host", "measured", 3000)],
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_are_placed_by_what_the_writer_says(tmp_path: Path, writer: str) -> None:
    events, expected = WRITERS[writer]
    trace = load_events(tmp_path, events)
    spans = trace.spans
    found = zip(spans["kind"], spans["domain"], spans["timing"], spans["dur_ns"], strict=True)
    assert [(str(kind), str(domain), str(timing), int(ns)) for kind, domain, timing, ns in found] == expected
    assert not [w for w in trace.meta["warnings"] if w.code == "domain_unsaid"]


@pytest.mark.parametrize(
    ("pid", "process"), [(0, "renderer"), (7, "my server"), (1, "GPU Process"), (2, "Streaming worker")]
)
def test_a_small_pid_or_a_word_is_no_device(tmp_path: Path, pid: int, process: str) -> None:
    trace = load_events(tmp_path, [*named(pid, process, 1, "worker"), event(pid, 1, "work", 1, 2, "mine")])
    assert trace.spans["domain"].tolist() == ["host"]
    assert trace.tracks["device"].isna().all()
    assert [w.code for w in trace.meta["warnings"]] == ["domain_unsaid"]
