"""The records of a result file as events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.work_names import kind_by_rules
from torchtrt_viz.formats.rocprof.agents import device_of
from torchtrt_viz.formats.rocprof.counters import Allocations, Series
from torchtrt_viz.formats.rocprof.events import NO_TIME, Events, Names
from torchtrt_viz.formats.rocprof.json_columns import numbers, records_of, texts, values_at
from torchtrt_viz.formats.rocprof.json_details import RecordDetails
from torchtrt_viz.formats.rocprof.places import Agent, Places, combinations
from torchtrt_viz.formats.rocprof.ranges import ranges_of
from torchtrt_viz.formats.rocprof.vocabulary import (
    DESCRIBING_LISTS,
    GPU,
    HOST,
    crosses_threads,
    is_mark,
    kind_of_list,
)
from torchtrt_viz.model.schema import KINDS

__all__ = ["ProcessTables"]

Ints = NDArray[np.int64]

_KERNELS, _COPIES, _MARKERS, _COUNTERS = "kernel_dispatch", "memory_copy", "marker_api", "counter_collection"
_MEMORY = ("memory_allocation", "scratch_memory")
_AXES = ("x", "y", "z")


class ProcessTables:
    """One process of the file: what its numbers stand for, then its records.

    Parameters
    ----------
    process
        The mapping of the process; its lists of records are let go as they are read.
    scope
        Its number in the file: ids of launches count within it.
    """

    def __init__(
        self,
        process: dict[str, Any],
        scope: int,
        events: Events,
        names: Names,
        places: Places,
        allocations: Allocations,
    ) -> None:
        self._process, self._scope = process, scope
        self._events, self._names, self._places = events, names, places
        self._allocations_of = allocations
        self._first_part = len(events.spans)
        metadata = process.get("metadata")
        self.metadata: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
        pid = self.metadata.get("pid")
        self._pid = pid if type(pid) is int and 0 <= pid < 1 << 31 else -1
        places.name_process(self._pid, _program(self.metadata.get("command")))
        self.agents, self.described = _agents(process.get("agents"))
        strings = process.get("strings")
        self._strings: dict[str, Any] = strings if isinstance(strings, dict) else {}
        self._operations = self._operation_names()
        self._kernel_names = _kernel_names(process.get("kernel_symbols"))
        self._counter_names = {
            number: name
            for entry in records_of(process.get("counters"))[0]
            if isinstance(name := entry.get("name"), str) and (number := _handle(entry.get("id"))) is not None
        }
        self.series: list[Series] = []

    def read(self) -> None:
        """Read all lists of records."""
        process, events = self._process, self._events
        for name in DESCRIBING_LISTS:
            found = process.get(name)
            if isinstance(found, list):
                events.described[name] = events.described.get(name, 0) + len(found)
        buffers = process.get("buffer_records")
        callbacks = process.get("callback_records")
        lists: dict[str, Any] = {}
        for found in (callbacks, buffers):
            if isinstance(found, dict):
                for name, records in found.items():
                    lists.setdefault(str(name), []).append(records)
        counted = lists.pop(_COUNTERS, [])
        dispatched = any(isinstance(found, list) and found for found in lists.get(_KERNELS, []))
        for name, parts in lists.items():
            for part in parts:
                records, lost = records_of(part)
                events.leave_out("no_record", lost)
                if records:
                    self._read_list(name, records)
        for part in counted:
            records, lost = records_of(part)
            events.leave_out("no_record", lost)
            if records:
                self._counter_records(records, alone=not dispatched)

    def _read_list(self, name: str, records: list[dict[str, Any]]) -> None:
        if name == _KERNELS:
            self._kernels(name, records, records, numbers(records, "thread_id"))
        elif name == _COPIES:
            self._copies(records)
        elif name in _MEMORY:
            self._allocations(name, records)
        elif "start_timestamp" in records[0] and "end_timestamp" in records[0]:
            self._calls(name, records)
        else:
            self._events.unread[name] = self._events.unread.get(name, 0) + len(records)

    # -- what numbers stand for ------------------------------------------------------------------------------

    def _operation_names(self) -> dict[tuple[int, ...], str]:
        """Return (kind, operation) -> name of a record's operation."""
        out: dict[tuple[int, ...], str] = {}
        listed = self._strings.get("buffer_records")
        for kind, entry in enumerate(listed if isinstance(listed, list) else []):
            operations = entry.get("operations") if isinstance(entry, dict) else None
            for number, text in enumerate(operations if isinstance(operations, list) else []):
                if isinstance(text, str):
                    out[kind, number] = text
        return out

    def _operations_of(self, records: list[dict[str, Any]], what: str) -> tuple[list[str], Ints]:
        """Return the distinct operations of records, and which one each record has."""
        pairs, inverse = combinations([numbers(records, "kind"), numbers(records, "operation")])
        return [self._operations.get(pair, f"{what} {pair[1]}") for pair in pairs], inverse

    def _messages(self) -> dict[int, str]:
        """Return id of a marker -> its text."""
        listed = self._strings.get(_MARKERS)
        if isinstance(listed, dict):
            listed = [{"key": key, "value": value} for key, value in listed.items()]
        records, _ = records_of(listed)
        keys = numbers(records, "key").tolist()
        return {
            key: text for key, text in zip(keys, texts(records, "value"), strict=True) if text is not None
        }

    def _devices(self, handles: Ints) -> Ints:
        """Return the number of the GPU of each agent, -1 for other agents."""
        pairs, inverse = combinations([handles])
        index = [
            agent.index if (agent := self.agents.get(handle)) is not None and agent.gpu else -1
            for (handle,) in pairs
        ]
        return np.array([*index, -1], np.int64)[inverse]

    def _all(self, count: int) -> Ints:
        return np.full(count, self._pid, np.int64)

    # -- records ---------------------------------------------------------------------------------------------

    def _kernels(self, table: str, records: list[Any], timed: list[Any], tid: Ints) -> None:
        """Add kernels.

        Parameters
        ----------
        timed
            For each record the mapping with its times, ids and ``dispatch_info``.
        """
        info = values_at(timed, "dispatch_info")
        kernel, queue = numbers(info, "kernel_id"), numbers(info, "queue_id", "handle")
        stream = numbers(records, "stream_id", "handle")
        if (stream < 0).all():
            stream = numbers(timed, "stream_id", "handle")
        agent = numbers(info, "agent_id", "handle")
        device = self._devices(agent)
        numbers_of, inverse = combinations([kernel])
        codes = self._names.table(
            [self._kernel_names.get(number) or f"kernel {number}" for (number,) in numbers_of], "kernel"
        )
        kinds = np.array(
            [kind_by_rules(KINDS.index("kernel"), self._names.texts[code]) for code in codes.tolist()],
            np.int8,
        )
        grid, block = (
            np.stack([numbers(info, f"{what}_size", axis) for axis in _AXES], axis=1).astype(np.int64)
            for what in ("grid", "workgroup")
        )
        details = RecordDetails(
            {
                "kernel_id": kernel,
                "dispatch_id": numbers(info, "dispatch_id"),
                "queue": queue,
                "stream": stream,
                "thread_id": tid,
                "agent": agent,
                "correlation": numbers(timed, "correlation_id", "internal"),
                "external correlation": numbers(timed, "correlation_id", "external", missing=0),
                "private_segment_size": numbers(info, "private_segment_size"),
                "group_segment_size": numbers(info, "group_segment_size"),
            },
            grid=grid,
            block=block,
        )
        self._events.add(
            table,
            details,
            name=codes[inverse],
            kind=kinds[inverse],
            domain=GPU,
            track=self._places.queues(self._all(len(records)), device, queue, stream),
            start=numbers(timed, "start_timestamp", missing=NO_TIME),
            end=numbers(timed, "end_timestamp", missing=NO_TIME),
            link=numbers(timed, "correlation_id", "internal"),
            scope=self._scope,
        )

    def _copies(self, records: list[dict[str, Any]]) -> None:
        target, source = (numbers(records, f"{side}_agent_id", "handle") for side in ("dst", "src"))
        stream = numbers(records, "stream_id", "handle")
        to, of = self._devices(target), self._devices(source)
        names, inverse = self._operations_of(records, "memory copy")
        codes = self._names.table([*names], "memory copy")
        details = RecordDetails(
            {
                "bytes": numbers(records, "bytes"),
                "stream": stream,
                "thread_id": numbers(records, "thread_id"),
                "source agent": source,
                "target agent": target,
                "correlation": numbers(records, "correlation_id", "internal"),
            }
        )
        self._events.add(
            _COPIES,
            details,
            name=codes[inverse],
            kind="memcpy",
            domain=GPU,
            track=self._places.copies(self._all(len(records)), np.where(to >= 0, to, of), stream),
            **self._common(records),
        )

    def _common(self, records: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "start": numbers(records, "start_timestamp", missing=NO_TIME),
            "end": numbers(records, "end_timestamp", missing=NO_TIME),
            "link": numbers(records, "correlation_id", "internal"),
            "scope": self._scope,
        }

    def _calls(self, table: str, records: list[dict[str, Any]]) -> None:
        """Add calls, markers, and records of other kinds that have a start and an end on a thread."""
        tid = numbers(records, "thread_id")
        names, inverse = self._operations_of(records, table)
        codes = self._names.table([*names], table)[inverse]
        track = self._places.threads(self._all(len(records)), tid)
        link = numbers(records, "correlation_id", "internal")
        marks = operation = said = None
        kind: Any = kind_of_list(table)
        if table == _MARKERS:
            operation, said = (names, inverse), self._texts(link)
            named, kinds = (column[said[1]] for column in ranges_of(said[0], self._names))
            codes, kind = np.where(named >= 0, named, codes).astype(np.int32), kinds
            operations = np.array([*(is_mark(name) for name in names), False], bool)
            marks = operations[inverse]
            crossing = np.array([*(crosses_threads(name) for name in names), False], bool)[inverse]
            rows = np.flatnonzero(crossing & ~marks)
            if len(rows):
                track[rows] = self._places.row(self._pid, "async", "roctx ranges (start to end)")
        columns: dict[str, Any] = {
            "thread_id": tid,
            "correlation": link,
            "ancestor": numbers(records, "correlation_id", "ancestor"),
            "external correlation": numbers(records, "correlation_id", "external", missing=0),
        }
        details = RecordDetails(columns, calls=values_at(records, "args"), operation=operation, texts=said)
        common = self._common(records)
        self._events.add(
            table, details, name=codes, kind=kind, domain=HOST, track=track, marks=marks, **common
        )

    def _texts(self, ids: Ints) -> tuple[list[str], Ints]:
        """Return the distinct texts of markers, and which one each has, -1 none."""
        messages = self._messages()
        distinct, inverse = np.unique(ids, return_inverse=True)
        number: dict[str, int] = {}
        own = [
            -1 if (text := messages.get(one)) is None else number.setdefault(text, len(number))
            for one in distinct.tolist()
        ]
        return list(number), np.array([*own, -1], np.int64)[inverse]

    def _allocations(self, table: str, records: list[dict[str, Any]]) -> None:
        """Add allocations: host time on the thread that made them, and what is allocated over time."""
        tid = numbers(records, "thread_id")
        names, inverse = self._operations_of(records, table)
        agent = numbers(records, "agent_id", "handle")
        size = numbers(records, "allocation_size", missing=0)
        address = numbers(records, "address")
        if (address < 0).all():
            address = numbers(records, "address", "value")
        details = RecordDetails(
            {
                "bytes": size,
                "address": address,
                "agent": agent,
                "queue": numbers(records, "queue_id", "handle"),
                "thread_id": tid,
                "correlation": numbers(records, "correlation_id", "internal"),
            }
        )
        common = self._common(records)
        scratch = table == "scratch_memory"
        if scratch:  # the runtime's own thread, whatever thread is named
            track = np.full(len(records), self._places.row(self._pid, "async", "scratch memory"), np.int32)
        else:
            track = self._places.threads(self._all(len(records)), tid)
        self._events.add(
            table,
            details,
            name=self._names.table([*names], table)[inverse],
            kind="memory",
            domain=HOST,
            track=track,
            **common,
        )
        if not scratch:
            self._totals(names, inverse, agent, address, size, common["end"])

    def _totals(
        self, names: list[str], inverse: Ints, agent: Ints, address: Ints, size: Ints, at: Ints
    ) -> None:
        freed = np.array([*("FREE" in name for name in names), False], bool)[inverse]
        found, of = combinations([agent])
        known = np.array([*(handle in self.agents for (handle,) in found), False], bool)[of]
        device = np.where(known, self._devices(agent), -2)
        self._allocations_of.add(self._scope, device, address, size, at, freed)

    def _counter_records(self, records: list[dict[str, Any]], *, alone: bool) -> None:
        """Read counters of dispatches; where no dispatches are recorded, also the dispatches themselves."""
        data = values_at(records, "dispatch_data")
        start = numbers(data, "start_timestamp", missing=NO_TIME)
        end = numbers(data, "end_timestamp", missing=NO_TIME)
        if (start <= 0).all() and not alone:
            start, end = self._times_of(data)
        if alone:
            self._kernels(_COUNTERS, records, data, numbers(records, "thread_id"))
        else:
            self._events.read[_COUNTERS] = self._events.read.get(_COUNTERS, 0) + len(records)
        rows: list[int] = []
        counters: list[Any] = []
        values: list[float] = []
        for row, listed in enumerate(values_at(records, "records")):
            for entry in listed if isinstance(listed, list) else ():
                if not isinstance(entry, dict):
                    continue
                value = entry.get("value", entry.get("counter_value"))
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    rows.append(row)
                    counters.append(_handle(entry.get("counter_id")))
                    values.append(float(value) if abs(value) < 1e300 else float("nan"))
        if not rows:
            return
        at = np.array(rows, np.int64)
        ids = np.array([-1 if number is None else number & (1 << 62) - 1 for number in counters], np.int64)
        device = self._devices(numbers(data, "dispatch_info", "agent_id", "handle"))[at]
        pairs, of = combinations([ids, device])
        when = np.where(end[at] > 0, end[at], start[at])
        value = np.array(values)
        keep = np.flatnonzero((when > 0) & ~np.isnan(value))
        self.series.append(
            Series(
                [self._counter_names.get(number, f"counter {number}") for number, _ in pairs],
                [""] * len(pairs),
                [
                    self._places.row(self._pid, "counter", f"counters of GPU {index}", device=index)
                    for _, index in pairs
                ],
                of[keep],
                when[keep],
                value[keep],
            )
        )

    def _times_of(self, data: list[Any]) -> tuple[Ints, Ints]:
        """Return start and end of dispatches by their number, out of those that were recorded."""
        wanted = numbers(data, "dispatch_info", "dispatch_id")
        start = np.full(len(wanted), NO_TIME, np.int64)
        end = start.copy()
        for part in self._events.spans[self._first_part :]:
            if part.table != _KERNELS:
                continue
            known = part.details.column("dispatch_id")[part.positions]  # type: ignore[attr-defined]
            order = np.argsort(known, kind="stable")
            at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
            found = known[order][at] == wanted
            rows = order[at][found]
            start[found], end[found] = part.start[rows], part.start[rows] + part.dur[rows]
        return start, end


def _handle(value: Any) -> int | None:
    """Return a number that may be wrapped: {"handle": 5}."""
    if isinstance(value, dict):
        value = value.get("handle")
    return value if type(value) is int else None


def _program(command: Any) -> str:
    """Return the name of the program of a command; its arguments may hold what is not to be handed on."""
    words = command if isinstance(command, list) else str(command or "").split(" ")
    first = words[0] if words and isinstance(words[0], str) else ""
    return first.rpartition("/")[2][:100]


def _kernel_names(symbols: Any) -> dict[int, str]:
    """Return the number of a kernel -> its readable name."""
    records, _ = records_of(symbols)
    ids = numbers(records, "kernel_id").tolist()
    columns = [
        texts(records, f"{what}kernel_name") for what in ("formatted_", "demangled_", "truncated_", "")
    ]
    out: dict[int, str] = {}
    for number, *found in zip(ids, *columns, strict=True):
        name = next((text for text in found if text), None)
        if name:
            out[number] = name.removesuffix(".kd")
    return out


def _agents(listed: Any) -> tuple[dict[int, Agent], list[dict[str, Any]]]:
    """Return agents by handle, and the GPUs as torch describes devices."""
    agents: dict[int, Agent] = {}
    described: list[dict[str, Any]] = []
    gpus = 0
    for entry in records_of(listed)[0]:
        handle = _handle(entry.get("id"))
        if handle is None:
            continue
        is_gpu = entry.get("type") == 2
        index = entry.get("logical_node_type_id")
        number = index if type(index) is int and 0 <= index < 4096 else gpus
        gpus += is_gpu
        name = next(
            (text for key in ("product_name", "name") if isinstance(text := entry.get(key), str) and text), ""
        )
        agents[handle] = Agent(is_gpu, number if is_gpu else -1, name)
        if is_gpu:
            described.append(device_of(number, name, entry))
    return agents, described
