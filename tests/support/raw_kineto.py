"""Kineto files read with nothing but the standard library, for tests that need values from a file itself."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def events(path: Path) -> list[dict[str, Any]]:
    """Return the complete events with ``ts`` and ``dur`` as integer nanoseconds."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(raw, strict=False, parse_float=str)
    found = document["traceEvents"] if isinstance(document, dict) else document
    out = []
    for event in found:
        if event.get("ph") == "X" and event.get("dur") is not None:
            out.append({**event, "ts": _ns(event["ts"]), "dur": _ns(event["dur"])})
    return out


def _ns(microseconds: Any) -> int:
    if isinstance(microseconds, int):
        return microseconds * 1000
    return int((Decimal(microseconds) * 1000).to_integral_value())


def device_events(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the kernels, copies and fills among complete events, ordered by start."""
    work = [e for e in found if str(e.get("cat", "")).lower() in DEVICE]
    return sorted(work, key=lambda e: (e["ts"], e["ts"] + e["dur"]))


def union(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the union of the events' intervals by a plain loop."""
    merged: list[list[int]] = []
    for event in sorted(found, key=lambda e: e["ts"]):
        start, end = event["ts"], event["ts"] + event["dur"]
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [(start, end) for start, end in merged]


def length(intervals: list[tuple[int, int]]) -> int:
    """Return the total length of disjoint intervals."""
    return sum(end - start for start, end in intervals)


def intersection(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> int:
    """Return the length of the overlap of two unions by a plain loop."""
    total, i, j = 0, 0, 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        total += max(0, high - low)
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total
