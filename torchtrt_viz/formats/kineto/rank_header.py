"""What a trace-event file says about its own rank, read from the fields before its events.

Kineto writes ``distributedInfo`` (rank, world size, backend), ``host_name`` and the metadata that the program
added (``role``, ``instance``, ``session_id``, ...) before ``traceEvents``. Only these few fields are kept:
metadata and environment values of public traces carry secrets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.json_values import whole
from torchtrt_viz.formats.io.source import Source

__all__ = ["RankHeader", "read_rank_header"]

_HEADER_BYTES = 1 << 16
_LONG_HEADER_BYTES = 4 << 20
_MAX_TEXT = 256
_EVENTS = re.compile(rb'"traceEvents"\s*:')
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,9})\b')
_PID = re.compile(rb'"pid"\s*:\s*(\d{1,9})\b')


@dataclass(frozen=True)
class RankHeader:
    """Fields that tell whose trace it is; None where the file does not say."""

    rank: int | None = None
    world_size: int | None = None
    role: str | None = None
    instance: str | None = None
    session: str | None = None
    host: str | None = None
    pid: int | None = None


def _text(value: object) -> str | None:
    return value[:_MAX_TEXT] if isinstance(value, str) and value else None


def _parse(head: bytes) -> dict[str, Any] | None:
    """Parse the fields before the events as the object that they are the beginning of."""
    import orjson

    found = _EVENTS.search(head)
    if found is None:
        return None
    try:
        header = orjson.loads(head[: found.start()].rstrip().rstrip(b",") + b"}")
    except orjson.JSONDecodeError:
        return None
    return header if isinstance(header, dict) else None


def read_rank_header(source: Source) -> RankHeader:
    """Read what the file says about its rank; an empty header where it says nothing or cannot be read."""
    try:
        head = source.head(_HEADER_BYTES)
        if b"distributedInfo" in head and _EVENTS.search(head) is None:
            head = source.head(_LONG_HEADER_BYTES)  # process groups of thousands of ranks are listed there
    except TraceFormatError:
        return RankHeader()
    fields = _parse(head)
    pid = _PID.search(head)
    seen_pid = None if pid is None else int(pid[1])
    if fields is None:
        rank = _RANK.search(head)
        return RankHeader(rank=None if rank is None else int(rank[1]), pid=seen_pid)
    distributed = fields.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    return RankHeader(
        rank=whole(distributed.get("rank"), 0, 2**31),
        world_size=whole(distributed.get("world_size"), 0, 2**31),
        role=_text(fields.get("role")),
        instance=_text(fields.get("instance")),
        session=_text(fields.get("session_id")),
        host=_text(fields.get("host_name")),
        pid=seen_pid,
    )
