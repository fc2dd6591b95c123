"""Small JSON files that programs write beside a rank's trace: role, host, process, clock readings."""

from __future__ import annotations

from typing import Any

from torchtrt_viz.formats.io.source import HEAD_BYTES

__all__ = ["read_sidecar"]

#: key of theirs -> field of a `RankFile`
_FIELDS = {
    "session_id": "session",
    "role": "role",
    "worker_role": "role",
    "host": "host",
    "hostname": "host",
    "instance": "instance",
    "pid": "pid",
    "device": "device",
    "cycle": "cycle",
    "start_ns": "start_unix_ns",
    "start_unix_ns": "start_unix_ns",
    "stop_ns": "stop_unix_ns",
    "stop_unix_ns": "stop_unix_ns",
}


def read_sidecar(head: bytes, filename: str) -> dict[str, Any] | None:
    """Read a small JSON file that describes a rank and holds no events, as fields of a `RankFile`.

    None for everything else.

    Parameters
    ----------
    head
        The first 64 KiB of the file: longer ones are none.
    """
    import orjson

    if not filename.endswith(".json") or len(head) >= HEAD_BYTES or not head.lstrip().startswith(b"{"):
        return None
    try:
        document = orjson.loads(head)
    except orjson.JSONDecodeError:
        return None
    rank = document.get("rank")
    described = any(name in document for name in ("role", "host", "hostname", "pid", "worker_role"))
    if not isinstance(rank, int) or not 0 <= rank < 2**31 or not described or "traceEvents" in document:
        return None
    kinds = {"pid": int, "start_unix_ns": int, "stop_unix_ns": int, "cycle": int}
    out: dict[str, Any] = {"rank": rank}
    for theirs, ours in _FIELDS.items():
        value = document.get(theirs)
        if isinstance(value, kinds.get(ours, str)) and not isinstance(value, bool):
            out.setdefault(ours, value)
    return out
