"""Values over time: metrics that were sampled while the program ran, and what was made of other events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.nsys.distinct import combinations
from torchtrt_viz.formats.nsys.events import NO_TIME
from torchtrt_viz.formats.nsys.export import Export, Table
from torchtrt_viz.formats.nsys.places import UNKNOWN, Places
from torchtrt_viz.formats.sqlite.database import Kind
from torchtrt_viz.model import schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METRICS", "Series", "counters_frame", "read_metrics"]

METRICS = "GPU_METRICS"

_UNIT = re.compile(r"\[([^\]]*)\]\s*$")
_DEVICE_BITS = 0xFF


@dataclass(frozen=True)
class Series:
    """Values of several counters.

    Attributes
    ----------
    names, units, tracks
        Of each counter; "" for no unit.
    of
        Which counter each value is of.
    """

    names: Sequence[str]
    units: Sequence[str]
    tracks: Sequence[int]
    of: NDArray[np.int64]
    at: NDArray[np.int64]
    value: NDArray[np.float64]


def read_metrics(export: Export, places: Places) -> tuple[Series | None, dict[str, tuple[int, int]], int]:
    """Return sampled metrics, (rows, lost rows) of their table, and how many rows have no value or time."""
    if METRICS not in export.tables:
        return None, {}, 0
    columns: dict[str, Kind] = dict.fromkeys(("timestamp", "typeId", "metricId"), "integer")
    table = Table(export, METRICS, {**columns, "value": "real"})
    names = _names(export)
    pairs, inverse = combinations([table.integers("typeId"), table.integers("metricId")])
    value = table.take("value")
    values = np.full(table.count, np.nan) if value is None else value.values
    at = table.integers("timestamp", NO_TIME)
    keep = np.flatnonzero((at != NO_TIME) & ~np.isnan(values))
    texts = [names.get(pair, f"metric {pair[1]}") for pair in pairs]
    tracks = [_track(places, kind) for kind, _ in pairs]
    units = [_unit(text) for text in texts]
    series = Series(texts, units, tracks, inverse[keep], at[keep], values[keep])
    return series, {METRICS: (table.count, table.lost)}, table.count - len(keep)


def counters_frame(series: Sequence[Series], rank: int) -> pd.DataFrame:
    """Return ``trace.counters``."""
    import pandas as pd  # slow to import

    names = list(dict.fromkeys(name for each in series for name in each.names))
    units = list(dict.fromkeys(unit for each in series for unit in each.units if unit))

    def joined(tables: Sequence[Sequence[int]]) -> NDArray[np.int32]:
        parts = [
            np.array([*table, -1], np.int32)[each.of] for table, each in zip(tables, series, strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    count = sum(len(each.at) for each in series)
    return schema.COUNTERS.frame(
        {
            "name": pd.Categorical.from_codes(
                joined([[names.index(name) for name in each.names] for each in series]),
                categories=pd.Index(names, dtype="str"),
            ),
            "track": joined([each.tracks for each in series]),
            "ts_ns": np.concatenate([each.at for each in series]) if series else np.zeros(0, np.int64),
            "value": np.concatenate([each.value for each in series]) if series else np.zeros(0),
            "unit": pd.Categorical.from_codes(
                joined([[units.index(unit) if unit else -1 for unit in each.units] for each in series]),
                categories=pd.Index(units, dtype="str"),
            ),
            "rank": rank,
        },
        count,
    )


def _names(export: Export) -> Mapping[tuple[int, ...], str]:
    if "TARGET_INFO_GPU_METRICS" not in export.tables:
        return {}
    columns: dict[str, Kind] = dict.fromkeys(("typeId", "metricId"), "integer")
    table = Table(export, "TARGET_INFO_GPU_METRICS", {**columns, "metricName": "text"})
    names = table.take("metricName")
    if names is None:
        return {}
    pairs = zip(table.integers("typeId").tolist(), table.integers("metricId").tolist(), strict=True)
    texts = names.texts or []
    return {pair: texts[code] for pair, code in zip(pairs, names.values.tolist(), strict=True) if code >= 0}


def _track(places: Places, kind: int) -> int:
    """Return the row of one device's metrics: its number is the lowest byte of their type."""
    device = kind & _DEVICE_BITS
    return places.row(UNKNOWN, "counter", f"metrics of GPU {device}", domain="gpu", device=device)


def _unit(name: str) -> str:
    found = _UNIT.search(name)
    if found is None:
        return ""
    return "%" if "%" in found[1] else found[1]
