"""Profiles of ONNX Runtime as its versions write them: a line an event, in an array."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["device_event", "node", "session_event", "stats", "write_profile"]

PROCESS = 4711


def _event(category: str, name: str, start: int, dur: int, args: Mapping[str, Any], **more: Any) -> str:
    """Write an event with the writer's own blanks; names are not escaped by it."""
    pid, tid = more.get("pid", PROCESS), more.get("tid", PROCESS)
    text = ",".join(f'"{key}" : {json.dumps(value)}' for key, value in args.items())
    return (
        f'{{"cat" : "{category}","pid" :{pid},"tid" :{tid},"dur" :{dur},"ts" :{start},"ph" : "X",'
        f'"name" :"{name}","args" : {{{text}}}}}'
    )


def session_event(name: str, start: int, dur: int, **more: Any) -> str:
    """Write an event of a session, times in microseconds."""
    return _event("Session", name, start, dur, {}, **more)


def stats(session: int) -> dict[str, Any]:
    """Return what is written of the threads."""
    pool = {"thread_pool_name": f"session-{session}-intra-op", "thread_id": "140", "block_size": [1]}
    return {"main_thread": {**pool, "core": 1, "Run": 5}, "sub_threads": {}}


def node(
    name: str,
    start: int,
    dur: int,
    op: str | None = None,
    provider: str | None = None,
    inputs: Sequence[Mapping[str, Any]] | None = None,
    what: str = "kernel_time",
    args: Mapping[str, Any] | None = None,
    **more: Any,
) -> str:
    """Write the execution of a node, or a fence around it."""
    found = {
        "op_name": op,
        "provider": provider,
        "input_type_shape": inputs,
        **(args or {}),
    }
    said = {key: value for key, value in found.items() if value is not None}
    return _event("Node", f"{name}_{what}", start, dur, said, **more)


def device_event(name: str, start: int, dur: int, category: str = "Kernel", **args: Any) -> str:
    """Write what a provider's profiler adds; all of it is under process and thread -1."""
    return _event(category, name, start, dur, args, pid=-1, tid=-1)


def write_profile(path: Path, events: Iterable[str], end: str = "\n]\n") -> Path:
    """Write the array."""
    path.write_text("[\n" + ",\n".join(events) + end)
    return path
