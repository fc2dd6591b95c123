"""What devices did: kernels, copies, fills, whole graphs; and how long the host waited for them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.nsys.enums import copy_names, labels
from torchtrt_viz.formats.nsys.events import GPU, HOST, NO_TIME, Events, Scopes
from torchtrt_viz.formats.nsys.export import Export, Table, missing_in
from torchtrt_viz.formats.nsys.names import Names, kinds_by_name
from torchtrt_viz.formats.nsys.places import UNKNOWN, Places, process_of
from torchtrt_viz.formats.sqlite.database import Kind
from torchtrt_viz.model.schema import KINDS

__all__ = ["DEVICE_TABLES", "read_device"]

Ints = NDArray[np.int64]

_PREFIX = "CUPTI_ACTIVITY_KIND_"
KERNEL, COPY, FILL, GRAPH, WAIT = (
    f"{_PREFIX}{name}" for name in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "SYNCHRONIZATION")
)
DEVICE_TABLES = (KERNEL, f"{_PREFIX}CONCURRENT_KERNEL", COPY, f"{_PREFIX}MEMCPY2", FILL, GRAPH, WAIT)

#: What CUPTI writes where a wait is for a whole context.
_NO_STREAM = (-1, 0xFFFFFFFF)
_PLACE = ("deviceId", "contextId", "streamId", "globalPid")
_NAMES = ("demangledName", "shortName", "mangledName")


def read_device(
    export: Export, names: Names, places: Places, scopes: Scopes, events: Events
) -> dict[str, tuple[int, int]]:
    """Read the tables of device work.

    Returns
    -------
    dict
        Table -> (rows, rows lost to damage).
    """
    out: dict[str, tuple[int, int]] = {}
    launched: list[Ints] = []
    for table in DEVICE_TABLES:
        if table not in export.tables:
            continue
        own = {
            COPY: ("copyKind", "srcKind", "dstKind"),
            f"{_PREFIX}MEMCPY2": ("copyKind", "srcKind", "dstKind"),
            FILL: ("memKind", "memoryKind"),
            GRAPH: ("graphId", "graphExecId"),
            WAIT: ("syncType",),
        }.get(table)
        if own is None:
            own = tuple(name for name in _NAMES if name in export.tables[table])[:1]
        columns: dict[str, Kind] = dict.fromkeys(("start", "end", "correlationId", *_PLACE, *own), "integer")
        found = Table(export, table, columns)
        out[table] = found.count, found.lost
        work = _Work(found, names, places, scopes, events)
        if table == WAIT:
            work.waits(labels(export, "ENUM_CUPTI_SYNC_TYPE"))
        elif table == GRAPH:
            work.graphs(np.concatenate(launched) if launched else np.zeros(0, np.int64))
        elif own[:1] == ("copyKind",):
            work.copies(copy_names(export), labels(export, "ENUM_CUDA_MEM_KIND"))
        elif table == FILL:
            work.fills(labels(export, "ENUM_CUDA_MEM_KIND"))
        else:
            work.kernels(own[0] if own else None)
            launched.append(work.correlation)
    return out


class _Work:
    """Device work of one table."""

    def __init__(self, found: Table, names: Names, places: Places, scopes: Scopes, events: Events) -> None:
        self._found, self._names, self._places, self._events = found, names, places, events
        process = process_of(found.integers("globalPid"))
        known = scopes.processes()
        if len(known) == 1:  # exports of before 2021 do not say whose the work is
            process = np.where(process == UNKNOWN, known[0], process)
        ids = found.integers("correlationId")
        if len(known) > 1:
            events.unlinked += int(((process == UNKNOWN) & (ids > 0)).sum())
        self.correlation = scopes.scoped(ids, process)
        self._process = process

    def _place(self) -> NDArray[np.int32]:
        found = self._found
        device, context, stream = (found.integers(name) for name in ("deviceId", "contextId", "streamId"))
        return self._places.streams(self._process, device, context, stream)

    def _add(self, name: NDArray[np.int32], kind: NDArray[np.int8] | str) -> None:
        found = self._found
        track = self._place()
        start, end = found.integers("start", NO_TIME), found.take("end")
        self._events.add(
            found.name,
            name=name,
            kind=kind,
            domain=GPU,
            track=track,
            start=start,
            end=np.zeros(found.count, np.int64) if end is None else end.values,
            open_end=missing_in(end, found.count),
            correlation=self.correlation,
            zero_is_unknown=True,
        )

    def kernels(self, column: str | None) -> None:
        """Add kernels under the names with their templates."""
        ids = np.full(self._found.count, -1, np.int64) if column is None else self._found.integers(column)
        codes = self._names.of_ids(ids, missing="(unnamed kernel)")
        self._add(codes, kinds_by_name(self._names.texts, codes, "kernel"))

    def copies(self, kinds: Mapping[int, str], memories: Mapping[int, str]) -> None:
        """Add copies, named as other tools name them: way, and memory on both sides."""
        columns = [self._found.integers(name) for name in ("copyKind", "srcKind", "dstKind")]

        def named(kind: int, source: int, target: int) -> str:
            way = kinds.get(kind, f"kind {kind}")
            if source in memories and target in memories:
                return f"Memcpy {way} ({memories[source]} -> {memories[target]})"
            return f"Memcpy {way}"

        self._add(self._names.of_codes(columns, named), "memcpy")

    def fills(self, memories: Mapping[int, str]) -> None:
        """Add fills."""
        column = "memKind" if "memKind" in self._found else "memoryKind"
        memory = self._found.integers(column)

        def named(kind: int) -> str:
            return f"Memset ({memories[kind]})" if kind in memories else "Memset"

        self._add(self._names.of_codes([memory], named), "memset")

    def graphs(self, launched: Ints) -> None:
        """Add launches of whole graphs: work, unless the kernels of the launch are recorded one by one."""
        graph = self._found.integers("graphId")
        name = self._names.of_codes(
            [graph], lambda number: f"CUDA graph {number}" if number >= 0 else "CUDA graph"
        )
        finer = (self.correlation >= 0) & np.isin(self.correlation, launched)
        kind = np.where(finer, KINDS.index("annotation"), KINDS.index("kernel")).astype(np.int8)
        self._add(name, kind)

    def waits(self, kinds: Mapping[int, str]) -> None:
        """Add how long the host waited for a stream or event: its time, recorded by the device's queue."""
        found = self._found
        kind = found.integers("syncType")
        name = self._names.of_codes([kind], lambda number: kinds.get(number, f"synchronization {number}"))
        # by stream alone: CUPTI gives these records device 0, whatever device the stream is of
        columns = [self._process, found.integers("streamId")]
        track = self._places.groups(columns, _waits_label)
        start, end = found.integers("start", NO_TIME), found.take("end")
        self._events.add(
            found.name,
            name=name,
            kind="other",
            domain=HOST,
            track=track,
            start=start,
            end=np.zeros(found.count, np.int64) if end is None else end.values,
            open_end=missing_in(end, found.count),
            correlation=self.correlation,
            zero_is_unknown=True,
        )


def _waits_label(_: int, stream: int) -> str:
    return "host waits for a device" if stream in _NO_STREAM else f"host waits for stream {stream}"
