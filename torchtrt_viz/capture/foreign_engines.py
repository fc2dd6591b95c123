"""Spans of engines that no program of the capture owns: of other runtimes and of opaque packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

__all__ = ["columns_of_others", "unreached"]

_ROWS = ("engine", "call", "kind", "name", "start_ns", "end_ns", "thread", "timing", "on_device")


def columns_of_others(
    columns: Mapping[str, Any], owned: Iterable[tuple[str, int]], anchor: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what stands in ``engines.json``; None when every span belongs to a program's own ETDump.

    Parameters
    ----------
    columns
        What a recording collected (``torchtrt_viz._native.capture.Columns``).
    owned
        ``(engine_id, instance)`` of the engines whose spans the programs recorded themselves.
    anchor
        Clocks read together, which place the spans in Unix time.
    """
    mine = set(owned)
    engines = list(columns["engines"])
    foreign = np.array([(e["engine_id"], e["instance"]) not in mine for e in engines], bool)
    if not foreign.any():
        return None
    rows = np.flatnonzero(foreign[columns["engine"]])
    if len(rows) == 0:
        return None
    place = np.cumsum(foreign) - 1
    kept = {key: np.asarray(columns[key])[rows].astype(np.int64) for key in _ROWS}
    kept["engine"] = place[kept["engine"]]
    names, kept["name"] = np.unique(kept["name"], return_inverse=True)
    return {
        **{key: values.reshape(-1).tolist() for key, values in kept.items()},
        "names": [columns["names"][i] for i in names],
        "labels": [columns["labels"][i] for i in names],
        "timings": list(columns["timings"]),
        "engines": [dict(engine) for engine, other in zip(engines, foreign, strict=True) if other],
        "dropped": int(columns["dropped"]),
        "anchor": dict(anchor),
    }


def unreached(columns: Mapping[str, Any] | None) -> list[str]:
    """Say what of the programs around such engines is not recorded, and how it would be."""
    found = []
    if columns is not None:
        methods = {str(e.get("method")) for e in columns["engines"] if e.get("owner") == "executorch"}
        if methods:
            found.append(
                f"method {', '.join(sorted(methods))} ran in a program that another runtime loaded: only its "
                "TensorRTBackend calls are recorded; load it with torchtrt_viz.Program to have its operators "
                "and other delegates as well"
            )
    return found
