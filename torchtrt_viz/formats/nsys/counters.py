"""Metrics that were sampled while the program ran."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from torchtrt_viz.formats.nsys.distinct import combinations
from torchtrt_viz.formats.nsys.events import NO_TIME
from torchtrt_viz.formats.nsys.export import Export, Table
from torchtrt_viz.formats.nsys.places import UNKNOWN, Places
from torchtrt_viz.model import schema

__all__ = ["METRICS", "read_counters"]

METRICS = "GPU_METRICS"

_UNIT = re.compile(r"\[([^\]]*)\]\s*$")
_DEVICE_BITS = 0xFF


def read_counters(
    export: Export, places: Places, rank: int
) -> tuple[pd.DataFrame, dict[str, tuple[int, int]], int]:
    """Return ``trace.counters``, (rows, lost rows) of the table, and how many rows have no value or time."""
    if METRICS not in export.tables:
        return schema.COUNTERS.frame({}, 0), {}, 0
    table = Table(
        export, METRICS, {**dict.fromkeys(("timestamp", "typeId", "metricId"), "integer"), "value": "real"}
    )
    names = _names(export)
    pairs, inverse = combinations([table.integers("typeId"), table.integers("metricId")])
    value = table.take("value")
    values = np.full(table.count, np.nan) if value is None else value.values
    at = table.integers("timestamp", NO_TIME)
    keep = np.flatnonzero((at != NO_TIME) & ~np.isnan(values))
    texts = [names.get(pair, f"metric {pair[1]}") for pair in pairs]
    tracks = [_track(places, kind) for kind, _ in pairs]
    units = [_unit(text) for text in texts]
    known = list(dict.fromkeys(unit for unit in units if unit))
    labels = list(dict.fromkeys(texts))
    series = inverse[keep]

    def of(codes: list[int]) -> np.ndarray:
        return np.array([*codes, -1], np.int32)[series]

    frame = schema.COUNTERS.frame(
        {
            "name": pd.Categorical.from_codes(
                of([labels.index(text) for text in texts]), categories=pd.Index(labels, dtype="str")
            ),
            "track": of(tracks),
            "ts_ns": at[keep],
            "value": values[keep],
            "unit": pd.Categorical.from_codes(
                of([known.index(unit) if unit else -1 for unit in units]),
                categories=pd.Index(known, dtype="str"),
            ),
            "rank": rank,
        },
        len(keep),
    )
    return frame, {METRICS: (table.count, table.lost)}, table.count - len(keep)


def _names(export: Export) -> Mapping[tuple[int, ...], str]:
    if "TARGET_INFO_GPU_METRICS" not in export.tables:
        return {}
    table = Table(
        export,
        "TARGET_INFO_GPU_METRICS",
        {**dict.fromkeys(("typeId", "metricId"), "integer"), "metricName": "text"},
    )
    names = table.take("metricName")
    if names is None:
        return {}
    rows = zip(
        table.integers("typeId").tolist(),
        table.integers("metricId").tolist(),
        names.values.tolist(),
        strict=True,
    )
    return {(kind, metric): (names.texts or [])[code] for kind, metric, code in rows if code >= 0}


def _track(places: Places, kind: int) -> int:
    """Return the row of one device's metrics: its number is the lowest byte of their type."""
    device = kind & _DEVICE_BITS
    return places.row(UNKNOWN, "counter", f"metrics of GPU {device}", domain="gpu", device=device)


def _unit(name: str) -> str | None:
    found = _UNIT.search(name)
    if found is None:
        return None
    return "%" if "%" in found[1] else found[1]
