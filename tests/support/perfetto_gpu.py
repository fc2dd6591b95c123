"""Packets of GPUs, written field by field (numbers as in google/perfetto, protos/perfetto/trace/gpu)."""

from __future__ import annotations

from typing import Any

from perfetto_messages import field, message, packet

QUEUES_AND_STAGES, CONTEXTS, COUNTERS, KERNELS, ARGUMENT_NAMES = 24, 23, 47, 1000, 1001
GRAPHICS, COMPUTE = 1, 2


def specification(iid: int, name: str, category: int = COMPUTE, description: str = "") -> bytes:
    body = {1: iid, 2: name, 4: category}
    return field(QUEUES_AND_STAGES, message({**body, **({3: description} if description else {})}))


def context(iid: int, pid: int, api: int = 4) -> bytes:
    return field(CONTEXTS, message({1: iid, 2: pid, 3: api}))


def interned_gpu(*entries: bytes, sequence: int = 1, flags: int = 1) -> bytes:
    return packet({12: b"".join(entries), 13: flags}, sequence)


def stage(ts: int, dur: int | None, *, sequence: int = 1, flags: int = 2, **said: Any) -> bytes:
    """A GpuRenderStageEvent: event=, queue=, stage=, gpu=, context=, submission=, ..."""
    numbers = {
        "event": 1,
        "old_queue": 3,
        "old_stage": 4,
        "context": 5,
        "extra": 6,
        "specifications": 7,
        "target": 8,
        "submission": 10,
        "gpu": 11,
        "queue": 13,
        "stage": 14,
        "name": 17,
        "waits": 18,
        "kernel": 19,
        "name_iid": 20,
        "launch": 21,
    }
    body = {numbers[key]: value for key, value in said.items()}
    if dur is not None:
        body[2] = dur
    return packet({8: ts, 53: message(body), 13: flags}, sequence)


def counter_spec(number: int, name: str, above: list[int], below: list[int] | None = None) -> bytes:
    """An entry of GpuCounterDescriptor."""
    return field(1, message({1: number, 2: name, 7: above, 8: below or []}))


def counters(
    ts: int, values: dict[int, float], *, sequence: int = 1, gpu: int | None = None, **more: Any
) -> bytes:
    """A GpuCounterEvent with integer or real values."""
    body = b"".join(field(2, message({1: k, 3 if isinstance(v, float) else 2: v})) for k, v in values.items())
    if gpu is not None:
        body += field(3, gpu)
    for key, value in more.items():
        body += field({"descriptor": 1, "iid": 4}[key], value)
    return packet({8: ts, 52: body}, sequence)
