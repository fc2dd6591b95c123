"""What this package writes beside the events of a Perfetto trace, so that it reads back what it wrote.

Perfetto has no place for some of what a trace here holds: whether time was spent on the host or the GPU, the
device and rank of a track, sums over calls that have no place on a time axis. They are one entry of the
trace's metadata, named `METADATA_NAME`, as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from torchtrt_viz.formats.io.json_values import text, whole
from torchtrt_viz.model import schema

__all__ = ["METADATA_NAME", "VERSION", "OwnMetadata", "read_own"]

METADATA_NAME = "torchtrt_viz"
VERSION = 1
_LONGEST_TEXT = 4096
_MOST_TRACKS = 1_000_000
_LARGEST = 2**62


@dataclass
class OwnMetadata:
    """The entry, checked.

    Attributes
    ----------
    origin_ns
        ``start_ns`` of the trace's time 0.
    base_ns, clock, synthetic, rank
        As in ``Trace.meta``.
    tracks
        Rows of ``Trace.tracks``.
    lanes
        uuid of a Perfetto track -> row of ``tracks``.
    counters
        uuid of a counter track -> name and unit.
    aggregates
        Spans without a place on the time axis.
    nesting
        Rows of the trace whose parent, depth and self time do not follow from the times, as arrays rows,
        parent, depth, self_ns; and the number of spans that the trace then has.
    """

    origin_ns: int = 0
    base_ns: int | None = None
    clock: str = "unknown"
    synthetic: bool = False
    rank: int | None = None
    tracks: list[dict[str, Any]] = field(default_factory=list)
    lanes: dict[int, int] = field(default_factory=dict)
    counters: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    aggregates: list[dict[str, Any]] = field(default_factory=list)
    nesting: dict[str, np.ndarray] = field(default_factory=dict)
    spans: int = 0


def read_own(metadata: list[tuple[str, str]]) -> OwnMetadata | None:
    """Find and check the entry; None when the trace has none, or one that does not hold together."""
    for name, content in metadata:
        if name == METADATA_NAME:
            try:
                document = orjson.loads(content)
            except orjson.JSONDecodeError:
                return None
            return _checked(document) if isinstance(document, dict) else None
    return None


def _checked(document: dict[str, Any]) -> OwnMetadata | None:
    tracks = document.get("tracks")
    lanes = document.get("lanes")
    if document.get("version") != VERSION or not isinstance(tracks, list) or not isinstance(lanes, dict):
        return None
    if len(tracks) > _MOST_TRACKS or not all(isinstance(t, dict) for t in tracks):
        return None
    out = OwnMetadata(
        origin_ns=_int(document.get("origin_ns")) or 0,
        base_ns=_int(document.get("base_ns")),
        clock=text(document.get("clock")) or "unknown",
        synthetic=document.get("synthetic") is True,
        rank=_int(document.get("rank")),
        tracks=[_track(track) for track in tracks],
    )
    for uuid, row in lanes.items():
        number = _uuid(uuid)
        if number is None or type(row) is not int or not 0 <= row < len(tracks):
            return None
        out.lanes[number] = row
    counters = document.get("counters")
    for uuid, entry in (counters if isinstance(counters, dict) else {}).items():
        number = _uuid(uuid)
        if number is not None and isinstance(entry, dict):
            out.counters[number] = (text(entry.get("name")) or "", text(entry.get("unit")))
    aggregates = document.get("aggregates")
    for entry in aggregates if isinstance(aggregates, list) else []:
        row = _aggregate(entry, len(tracks))
        if row is None:
            return None
        out.aggregates.append(row)
    _read_nesting(document.get("nesting"), out)
    return out


def _read_nesting(nesting: object, out: OwnMetadata) -> None:
    """Take in the nesting when it holds together; else the times tell it."""
    if not isinstance(nesting, dict) or _int(nesting.get("spans")) is None:
        return
    columns: dict[str, np.ndarray] = {}
    for name in ("rows", "parent", "depth", "self_ns"):
        values = nesting.get(name)
        if not isinstance(values, list) or not all(_int(value) is not None for value in values):
            return
        columns[name] = np.array(values, dtype=np.int64)
    spans = nesting["spans"]
    rows, parent, depth = columns["rows"], columns["parent"], columns["depth"]
    if any(len(column) != len(rows) for column in columns.values()):
        return
    inside = (rows >= 0) & (rows < spans) & (parent >= -1) & (parent < spans) & (depth >= 0) & (depth < 2**31)
    if inside.all():
        out.nesting, out.spans = columns, spans


def _track(track: dict[str, Any]) -> dict[str, Any]:
    return {
        "label": text(track.get("label")) or "",
        "type": track.get("type") if track.get("type") in schema.TRACK_TYPES else "other",
        "domain": _domain(track),
        "process": _name(track.get("process")),
        "thread": _name(track.get("thread")),
        "device": whole(track.get("device"), -(2**31), 2**31),
        "rank": whole(track.get("rank"), 0, 2**31),
        "sort_index": _int(track.get("sort_index")) or 0,
        "process_name": text(track.get("process_name")),
    }


def _aggregate(entry: object, tracks: int) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    dur, track = _int(entry.get("dur_ns")), entry.get("track")
    if dur is None or dur < 0 or type(track) is not int or not 0 <= track < tracks:
        return None
    if entry.get("kind") not in schema.KINDS or entry.get("timing") not in schema.TIMINGS[1:]:
        return None
    links = {key: _int(entry.get(key)) for key in ("correlation", "external_id")}
    return {
        "name": text(entry.get("name")) or "",
        "kind": entry["kind"],
        "domain": _domain(entry),
        "timing": entry["timing"],
        "track": track,
        "dur_ns": dur,
        **{key: -1 if value is None else value for key, value in links.items()},
        "iteration": _number(entry.get("iteration")),
        "run_id": text(entry.get("run_id")),
        "args": entry.get("args") if isinstance(entry.get("args"), dict) else {},
    }


def _domain(entry: dict[str, Any]) -> str | None:
    """Return host or gpu; None where the writer said that it is unknown."""
    value = entry.get("domain", "host")
    return None if value is None else value if value in schema.DOMAINS else "host"


def _name(value: object) -> str | None:
    """Return a process or thread as its producer named it; earlier versions wrote numbers as numbers."""
    number = None if isinstance(value, str) else _int(value)
    return value if isinstance(value, str) else None if number is None else str(number)


def _int(value: object) -> int | None:
    return whole(value, -_LARGEST, _LARGEST + 1)


def _uuid(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 2**64 else None


def _number(value: object) -> int:
    """Return a rank or an iteration, -1 where there is none."""
    number = whole(value, -(2**31), 2**31)
    return -1 if number is None else number
