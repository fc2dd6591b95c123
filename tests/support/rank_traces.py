"""Small trace-event files as Kineto writes them, for tests about ranks and sessions."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

BASE_NS = 1_790_857_026_000_000_000


def event(name: str, start_us: float, dur_us: float, cat: str = "user_annotation", tid: int = 7, **args: Any):
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 100,
        "tid": tid,
        "ts": start_us,
        "dur": dur_us,
        "args": args,
    }


def trace_json(events: list[dict[str, Any]], **header: Any) -> bytes:
    """Return a whole Kineto document; ``rank=`` becomes ``distributedInfo``."""
    rank = header.pop("rank", None)
    world = header.pop("world_size", 8)
    if rank is not None:
        header["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": world}
    document = {
        "schemaVersion": 1,
        "host_name": "node-a",
        **header,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": events,
        "traceName": "trace.json",
    }
    return json.dumps(document, indent=1).encode()


def simple_events(scale: float = 1.0) -> list[dict[str, Any]]:
    """Two steps; in each a linear with an addmm inside, times in µs scaled."""
    out = []
    for step in range(2):
        at = 1000.0 * step
        out.append(event(f"ProfilerStep#{step}", at, 500 * scale))
        out.append(event("aten::linear", at + 10, 200 * scale, "cpu_op"))
        out.append(event("aten::addmm", at + 20, 150 * scale, "cpu_op"))
    return out


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") and ".tar" not in path.name else data)
    return path


def tar_gz(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()
