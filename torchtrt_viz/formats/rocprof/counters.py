"""Values over time: counters of kernels, samples, and how much memory is allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model import schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Allocations", "Series", "counters_frame"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


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
    of: Ints
    at: Ints
    value: NDArray[np.float64]


def counters_frame(series: Sequence[Series], rank: int) -> pd.DataFrame:
    """Return ``trace.counters``, by time within each counter."""
    import pandas as pd  # slow to import

    names = {name: at for at, name in enumerate(dict.fromkeys(n for each in series for n in each.names))}
    units = {unit: at for at, unit in enumerate(dict.fromkeys(u for each in series for u in each.units if u))}

    def joined(tables: Sequence[Sequence[int]]) -> NDArray[np.int32]:
        parts = [
            np.array([*table, -1], np.int32)[each.of] for table, each in zip(tables, series, strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    count = sum(len(each.at) for each in series)
    return schema.COUNTERS.frame(
        {
            "name": pd.Categorical.from_codes(
                joined([[names[name] for name in each.names] for each in series]),
                categories=pd.Index(list(names), dtype="str"),
            ),
            "track": joined([each.tracks for each in series]),
            "ts_ns": np.concatenate([each.at for each in series]) if series else np.zeros(0, np.int64),
            "value": np.concatenate([each.value for each in series]) if series else np.zeros(0),
            "unit": pd.Categorical.from_codes(
                joined([[units.get(unit, -1) for unit in each.units] for each in series]),
                categories=pd.Index(list(units), dtype="str"),
            ),
            "rank": rank,
        },
        count,
    )


class Allocations:
    """Allocations and releases of all processes, added up by device; addresses are a process's own.

    What was allocated before the recording began is not known: a release of it changes nothing.
    """

    def __init__(self) -> None:
        self._columns: list[tuple[NDArray[Any], ...]] = []

    def add(self, scope: int | Ints, device: Ints, address: Ints, size: Ints, at: Ints, freed: Mask) -> None:
        """Take events.

        Parameters
        ----------
        scope
            The process.
        device
            Number of the GPU, -1 for memory of the host, -2 where it is not said, as of a release.
        """
        size = np.clip(size, 0, 1 << 48)
        scopes = np.broadcast_to(np.asarray(scope, np.int64), len(at))
        self._columns.append((scopes, device, address, size, at, freed))

    def series(self, track: Callable[[], int]) -> list[Series]:
        """Return what is allocated over time; ``track`` makes its row where there is any."""
        if not self._columns:
            return []
        scope, device, address, size, at, freed = (
            np.concatenate(parts) for parts in zip(*self._columns, strict=True)
        )
        freed = freed.astype(bool)
        order = np.lexsort((at, address, scope))
        here, before = order[1:], order[:-1]
        ends = (address[here] == address[before]) & (scope[here] == scope[before])
        ends &= freed[here] & ~freed[before]
        change = np.where(freed, 0, size)
        change[here[ends]] = -change[before[ends]]
        owner = device.copy()
        owner[here[ends]] = device[before[ends]]
        rows = np.flatnonzero((at >= 0) & (owner >= -1) & (change != 0))
        rows = rows[np.lexsort((at[rows], owner[rows]))]
        if not len(rows):
            return []
        devices, place = np.unique(owner[rows], return_inverse=True)
        total = np.cumsum(change[rows])
        first = np.searchsorted(owner[rows], devices)
        earlier = np.where(first > 0, total[np.maximum(first - 1, 0)], 0)
        names = [f"allocated memory/{'cpu' if one < 0 else f'hip:{one}'}" for one in devices.tolist()]
        value = (total - earlier[place]).astype(np.float64)
        return [Series(names, ["B"] * len(names), [track()] * len(names), place, at[rows], value)]
