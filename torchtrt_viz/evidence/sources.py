"""What a document says of the files that its tables come from, and of what loading them left open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.model.session_data import SessionData
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["source_of", "warnings_of"]


def source_of(loaded: TraceData | SessionData, expression: str) -> dict[str, Any]:
    """Return what is known of a trace or session: files, format, clock, and what became of what they hold."""
    meta: dict[str, Any] = loaded.meta
    several = meta["format"] == "session"
    found: dict[str, Any] = {
        "kind": "session" if several else "trace",
        "files": [str(path) for path in meta["sources"]],
        "format": meta["format"],
        "expression": expression,
        "accounting": _accounting(meta.get("accounting")),
        "warnings": len(meta["warnings"]),
    }
    if several:
        return {**found, "recordings": len(cast("SessionData", loaded))}
    trace = cast("TraceData", loaded)
    return {
        **found,
        "rank": meta["rank"],
        "synthetic": bool(meta["synthetic"]),
        "base_ns": meta["base_ns"],
        "clock": meta["clock"],
        "duration_ns": trace.duration_ns,
        "spans": len(trace.spans),
    }


def warnings_of(*loaded: TraceData | SessionData) -> list[dict[str, Any]]:
    """Return what loaders repaired, left out or could not know."""
    return [_warning(repair) for one in loaded for repair in one.meta["warnings"]]


def _warning(repair: object) -> dict[str, Any]:
    if not isinstance(repair, Repair):
        return {"code": "note", "message": str(repair), "path": None, "offset": None, "count": 1}
    return {
        "code": repair.code,
        "message": repair.message,
        "path": repair.path,
        "offset": repair.offset,
        "count": repair.count,
    }


def _accounting(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return how many events (rows, keys, lines) were there, and what became of them; ``meta`` has more."""
    if found is None:
        return None
    return {
        "unit": found.get("unit"),
        "in_file": found.get("in_file"),
        "read": found.get("read"),
        "repaired": found.get("repaired"),
        "left_out": _sum(found.get("left_out")),
        "unread": _sum(found.get("unread")),
    }


def _sum(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sum(_numbers(value.values()))
    return value


def _numbers(values: Iterable[Any]) -> Iterable[int]:
    for value in values:
        if isinstance(value, Mapping):
            yield from _numbers(value.values())
        elif isinstance(value, int):
            yield int(value)
