"""Allocations of CUDA memory: when, by which thread, and how much is allocated since the recording began."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.nsys.counters import Series
from torchtrt_viz.formats.nsys.distinct import combinations
from torchtrt_viz.formats.nsys.enums import labels
from torchtrt_viz.formats.nsys.events import HOST, NO_TIME, Events, Scopes
from torchtrt_viz.formats.nsys.export import Export, Table
from torchtrt_viz.formats.nsys.names import Names
from torchtrt_viz.formats.nsys.places import UNKNOWN, Places, process_of
from torchtrt_viz.formats.sqlite.database import Kind

__all__ = ["MEMORY", "ON_HOST", "read_memory"]

Ints = NDArray[np.int64]

MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"

#: Kinds of memory that lie on the host.
ON_HOST = (0, 1)
_NUMBERS = (
    *("start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType"),
    "correlationId",
)


def read_memory(
    export: Export, names: Names, places: Places, scopes: Scopes, events: Events
) -> tuple[Series | None, dict[str, tuple[int, int]]]:
    """Read allocations and releases: instants on the threads that made them, and what is allocated over time.

    What was allocated before the recording began is not known: a release of it changes nothing.
    """
    if MEMORY not in export.tables:
        return None, {}
    columns: dict[str, Kind] = dict.fromkeys(_NUMBERS, "integer")
    table = Table(export, MEMORY, columns)
    process = process_of(table.integers("globalPid"))
    at = table.integers("start", NO_TIME)
    ids = scopes.scoped(table.integers("correlationId"), process)
    events.add_instants(
        MEMORY,
        name=np.full(table.count, names.add("[memory]"), np.int32),
        kind="memory",
        domain=HOST,
        track=_threads(events, places, process, ids),
        at=at,
    )
    operations = labels(export, "ENUM_CUDA_DEV_MEM_EVENT_OPER")
    released = [number for number, label in operations.items() if label.lower().startswith("dealloc")] or [1]
    releases = np.isin(table.integers("memoryOperationType", 0), released)
    devices = table.integers("deviceId")
    on_host = np.isin(table.integers("memKind", 2), ON_HOST)
    pairs, inverse = combinations([process, devices, on_host.astype(np.int64)])
    where = ["cpu" if host else f"cuda:{places.devices.index(key, device)}" for key, device, host in pairs]
    known = list(dict.fromkeys(where))
    place = np.array([known.index(text) for text in where] or [0], np.int64)[inverse]
    change = _changes(process, table.integers("address"), at, table.integers("bytes", 0), releases)
    order = np.lexsort((at, place))
    order = order[at[order] != NO_TIME]
    total = np.cumsum(change[order])
    first = np.searchsorted(place[order], np.arange(len(known)))
    before = np.where(first > 0, total[np.maximum(first - 1, 0)], 0)
    value = total - before[place[order]] if len(order) else total
    track = places.row(UNKNOWN, "counter", "CUDA memory")
    series = Series(
        [f"allocated memory/{text}" for text in known],
        ["B"] * len(known),
        [track] * len(known),
        place[order],
        at[order],
        value.astype(np.float64),
    )
    return series, {MEMORY: (table.count, table.lost)}


def _threads(events: Events, places: Places, process: Ints, ids: Ints) -> NDArray[np.int32]:
    """Return the row of the thread whose call each event belongs to, else one of its process."""
    out = (
        places.groups([process], lambda _: "memory of unknown threads") if len(ids) else np.zeros(0, np.int32)
    )
    calls = [part for part in events.spans if part.correlation is not None and part.domain == HOST]
    if not calls:
        return out
    keys = np.concatenate([np.asarray(part.correlation) for part in calls])
    rows = np.concatenate([part.track for part in calls])
    order = np.argsort(keys, kind="stable")
    position = np.minimum(np.searchsorted(keys[order], ids), len(keys) - 1)
    found = (ids >= 0) & (keys[order][position] == ids)
    out[found] = rows[order][position][found]
    return out


def _changes(process: Ints, address: Ints, at: Ints, size: Ints, releases: NDArray[np.bool_]) -> Ints:
    """Return by how much each event changes what is allocated."""
    order = np.lexsort((at, address, process))
    out = np.where(releases, 0, np.clip(size, 0, 1 << 48))
    if len(order) < 2:
        return out
    here, before = order[1:], order[:-1]
    same = (process[here] == process[before]) & (address[here] == address[before])
    ends = same & releases[here] & ~releases[before]
    out[here[ends]] = -out[before[ends]]
    return out
