"""What a trace says about its engines and delegates beyond their spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from torchtrt_viz.model.trace_data import TraceData

__all__ = ["details_of", "engine_infos", "engine_runtimes", "first_detail"]


def engine_infos(trace: TraceData) -> dict[str, Any]:
    """Return the trace's engine descriptions (``loaders.engine_info.EngineInfo``) by ``run_id``."""
    return {str(info.run_id): info for info in trace.meta.get("engines") or ()}


def details_of(trace: TraceData, rows: Iterable[int]) -> list[dict[str, Any]]:
    """Return the arguments of some spans, nested metadata merged in (the event's own keys win)."""
    out = []
    for found in trace.args.read(np.asarray(list(rows), dtype=np.int64)):
        metadata = found.get("metadata")
        out.append({**metadata, **found} if isinstance(metadata, dict) else dict(found))
    return out


def first_detail(details: Iterable[dict[str, Any]], *keys: str) -> Any:
    """Return the first value found under one of ``keys``, None without any."""
    for found in details:
        for key in keys:
            if found.get(key) not in (None, ""):
                return found[key]
    return None


def engine_runtimes(trace: TraceData) -> dict[str, str]:
    """Return which runtime executes each engine, by ``run_id``: ``tensorrt``, ``host``, ... as recorded."""
    return {run_id: str(info.runtime) for run_id, info in engine_infos(trace).items()}
