"""What a trace-event file says about its run, outside its events.

Only the keys listed here are read. Public traces carry whole environments, tokens among them, in keys of
their own: those are passed over by the decoder and never reach Python.
"""

from __future__ import annotations

import json
from typing import Any

from torchtrt_viz._native import native
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.session.rank_names import read_rank_name

__all__ = ["KEPT_KEYS", "clock_of", "rank_of", "read_values"]

_VERSIONS = (
    "schemaVersion",
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "roctracer_version",
    "rocprofiler_version",
    "hip_runtime_version",
    "hip_driver_version",
)
_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules", "synthetic")
_TEXTS = ("displayTimeUnit", "traceName", "trace_id", "host_name", "role", "instance", "session_id")
_VIZTRACER = "viztracer_metadata"
_OBJECTS = ("deviceProperties", "distributedInfo", _VIZTRACER)

#: Top-level keys whose values are read.
KEPT_KEYS: tuple[str, ...] = (*_VERSIONS, *_FLAGS, *_TEXTS, *_OBJECTS, "baseTimeNanoseconds")

_PLAIN = (str, int, float, bool)
_LONGEST_TEXT = 1000
_MAX_RANK = 2**31 - 1
# Microseconds since the epoch in the years 2001 to 2096, in ns: no clock since boot reaches them.
_EPOCH_NS = (10**18, 4 * 10**18)


def _parsed(text: bytes) -> Any:
    """Parse one value; None when it cannot be mended."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        mended = native("kineto").normalize(b'{"value":' + text + b"}")
    try:
        return json.loads(mended)["value"]
    except (ValueError, RecursionError):
        return None


def read_values(values: list[tuple[str, bytes]]) -> dict[str, Any]:
    """Return the part of ``trace.meta`` that the file itself gives.

    Parameters
    ----------
    values
        (key, JSON text) of the known top-level keys; of a key that occurs twice the last counts.
    """
    found = {key: _parsed(text) for key, text in values}
    meta: dict[str, Any] = {}
    for key in _TEXTS:
        if isinstance(found.get(key), str):
            meta[key] = found[key][:_LONGEST_TEXT]
    for key in _FLAGS:
        if isinstance(found.get(key), (bool, int)):
            meta[key] = bool(found[key])
    meta["versions"] = {key: found[key] for key in _VERSIONS if isinstance(found.get(key), (int, float, str))}
    if isinstance(found.get("distributedInfo"), dict):
        meta["distributedInfo"] = found["distributedInfo"]
    devices = found.get("deviceProperties")
    if isinstance(devices, list):
        meta["deviceProperties"] = [device for device in devices if isinstance(device, dict)]
        meta["devices"] = {
            device["id"]: device for device in meta["deviceProperties"] if isinstance(device.get("id"), int)
        }
    tool = found.get(_VIZTRACER)
    base = found.get("baseTimeNanoseconds")
    if isinstance(tool, dict):  # VizTracer puts its base there, since its version 1.1
        base = tool.get("baseTimeNanoseconds", base)
        meta["viztracer"] = {
            key: tool[key] for key in ("version", "overflow") if isinstance(tool.get(key), _PLAIN)
        }
        if "version" in meta["viztracer"]:
            meta["versions"]["viztracer"] = meta["viztracer"]["version"]
    if isinstance(base, str) and base.isascii() and base.isdigit():
        base = int(base[:30])
    if isinstance(base, int) and not isinstance(base, bool) and 0 <= base < 2**63:
        meta["base_ns"] = base
    return meta


def clock_of(base_ns: int | None, earliest_ns: int | None) -> tuple[int | None, str]:
    """Return (Unix ns of start_ns 0 or None, what the clock is, in words)."""
    if base_ns is not None:
        return base_ns, "nanoseconds since baseTimeNanoseconds, as the file gives them"
    if earliest_ns is not None and _EPOCH_NS[0] <= earliest_ns < _EPOCH_NS[1]:
        return 0, "nanoseconds since the Unix epoch, as their size tells; the file names no base"
    return None, "nanoseconds of the producer's own clock; the file names no base"


def rank_of(source: Source, given: int | None, meta: dict[str, Any]) -> int:
    """Return the rank: the one given, else what the file says, else what its name says, else -1."""
    if given is not None:
        return given
    rank = meta.get("distributedInfo", {}).get("rank")
    if isinstance(rank, str) and rank.isascii() and rank.isdigit():
        rank = int(rank[:20])
    if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank <= _MAX_RANK:
        return rank
    from_name = read_rank_name(source.name.replace("!", "/"))
    return -1 if from_name is None or from_name.rank is None else from_name.rank
