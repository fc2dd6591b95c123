"""What a page says about where a trace comes from.

Traces carry whatever their producers put into them; some public ones hold whole environments, tokens
included. Pages are passed on to other people, so only the entries named here go into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from torchtrt_viz.model.trace_data import TraceData

__all__ = ["known_facts", "warnings_of"]

_VERSIONS = (
    "python",
    "torch",
    "torch_tensorrt",
    "executorch",
    "tensorrt",
    "cuda",
    "cuda_runtime",
    "cuda_driver",
    "kineto",
    "torchtrt_viz",
)
_PLAIN = (
    ("format", "format"),
    ("clock", "clock"),
    ("rank", "rank"),
    ("world_size", "ranks in all"),
    ("engine_runtime", "engine runtime"),
    ("level", "profile level"),
)
_LONGEST = 400


def known_facts(trace: TraceData) -> list[tuple[str, str]]:
    """Return the label and text of every allowed entry of ``trace.meta`` that is there."""
    meta = trace.meta
    out: list[tuple[str, str]] = []
    sources = [PurePath(str(source)).name for source in meta.get("sources") or []]
    if sources:
        more = f" and {len(sources) - 4} more" if len(sources) > 4 else ""
        out.append(("file" if len(sources) == 1 else "files", ", ".join(sources[:4]) + more))
    for key, label in _PLAIN:
        value = meta.get(key)
        if isinstance(value, (str, int, float)) and value != "":
            out.append((label, _short(value)))
    begin = _begin(trace)
    if begin is not None:
        out.append(("recorded", begin))
    versions = meta.get("versions")
    if isinstance(versions, Mapping):
        known = [
            f"{key} {_short(versions[key])}"
            for key in _VERSIONS
            if isinstance(versions.get(key), (str, int, float))
        ]
        if known:
            out.append(("versions", ", ".join(known)))
    return out


def _begin(trace: TraceData) -> str | None:
    """The wall clock of the first measured span."""
    base = trace.meta.get("base_ns")
    if not isinstance(base, int) or trace.measured.empty:
        return None
    begin = base + int(trace.measured["start_ns"].min())
    try:
        day = datetime.fromtimestamp(begin // 10**9, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return f"{day:%Y-%m-%d %H:%M:%S} UTC"


def warnings_of(trace: TraceData, limit: int = 100) -> list[str]:
    """Return the loader's warnings as sentences; file names are without their folders."""
    out = []
    repairs: list[Any] = list(trace.meta.get("warnings") or [])
    for repair in repairs[:limit]:
        path = getattr(repair, "path", None)
        text = str(repair)
        out.append(text.replace(str(path), PurePath(str(path)).name) if path else text)
    if len(repairs) > limit:
        out.append(f"{len(repairs) - limit} more")
    return out


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
