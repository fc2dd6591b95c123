"""The rows of one run of a rocpd database as events."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.work_names import kind_by_rules
from torchtrt_viz.formats.rocprof.agents import device_of
from torchtrt_viz.formats.rocprof.counters import Allocations, Series
from torchtrt_viz.formats.rocprof.database_details import TableDetails
from torchtrt_viz.formats.rocprof.events import Events, Names
from torchtrt_viz.formats.rocprof.places import Agent, Places, combinations
from torchtrt_viz.formats.rocprof.ranges import ranges_of
from torchtrt_viz.formats.rocprof.run_tables import Keys, RunTables, filled, listed
from torchtrt_viz.formats.rocprof.vocabulary import GPU, HOST, crosses_threads, kind_of_category
from torchtrt_viz.model.schema import KINDS

__all__ = ["RunEvents"]

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

#: Level and type of an allocation -> the operation, as the profiler's other forms call it.
_ALLOCATIONS: dict[tuple[str | None, str | None], str] = {
    ("REAL", "ALLOC"): "MEMORY_ALLOCATION_ALLOCATE",
    ("REAL", "FREE"): "MEMORY_ALLOCATION_FREE",
    ("VIRTUAL", "ALLOC"): "MEMORY_ALLOCATION_VMEM_ALLOCATE",
    ("VIRTUAL", "FREE"): "MEMORY_ALLOCATION_VMEM_FREE",
    ("SCRATCH", "ALLOC"): "SCRATCH_MEMORY_ALLOC",
    ("SCRATCH", "FREE"): "SCRATCH_MEMORY_FREE",
    ("SCRATCH", "RECLAIM"): "SCRATCH_MEMORY_ASYNC_RECLAIM",
}
_EVENTS = ("kernel_dispatch", "memory_copy", "memory_allocate", "region", "sample", "pmc_event")


class RunEvents:
    """One run: what its ids stand for, then its rows.

    Parameters
    ----------
    number
        Its number in the file; ids of launches count within a run and process.
    """

    def __init__(
        self,
        tables: RunTables,
        number: int,
        events: Events,
        names: Names,
        places: Places,
        allocations: Allocations,
    ) -> None:
        self._number = number
        self._tables, self._events, self._names, self._places = tables, events, names, places
        self._allocations_of = allocations
        self.series: list[Series] = []
        self.meta: dict[str, Any] = {}
        self._strings = tables.strings()
        self._processes, self._threads = self._read_processes()
        self._agents = self._read_agents()
        self._read_events()

    # -- what ids stand for ----------------------------------------------------------------------------------

    def _read_processes(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return id of a process -> pid, id of a thread -> tid."""
        tables = self._tables
        for _, (host,) in tables.texts("info_node", "id", ("hostname",)).items():
            if host:
                self.meta.setdefault("host_name", host[:1000])
        pids = tables.integers("info_process", ("id", "pid"))
        processes = dict(zip(pids["id"].tolist(), pids["pid"].tolist(), strict=True))
        for number, (command,) in tables.texts("info_process", "id", ("command",)).items():
            program = (command or "").split(" ")[0].rpartition("/")[2][:100]
            self._places.name_process(processes.get(number, number), program)
        ids = tables.integers("info_thread", ("id", "pid", "tid"))
        threads = dict(zip(ids["id"].tolist(), ids["tid"].tolist(), strict=True))
        owners = dict(zip(ids["id"].tolist(), ids["pid"].tolist(), strict=True))
        for number, (called,) in tables.texts("info_thread", "id", ("name",)).items():
            owner = int(owners.get(number, -1))
            self._places.name_thread(
                processes.get(owner, owner), threads.get(number, -1), (called or "")[:200]
            )
        return processes, threads

    def _read_agents(self) -> dict[int, Agent]:
        tables = self._tables
        numbers = tables.integers("info_agent", ("id", "type_index", "absolute_index"))
        said = tables.texts("info_agent", "id", ("type", "product_name", "name", "extdata"))
        out: dict[int, Agent] = {}
        described = []
        gpus = 0
        for number, index in zip(numbers["id"].tolist(), numbers["type_index"].tolist(), strict=True):
            kind, product, name, extra = said.get(number, (None,) * 4)
            gpu = kind == "GPU"
            at = index if 0 <= index < 4096 else gpus
            gpus += gpu
            out[number] = Agent(gpu, at if gpu else -1, product or name or "")
            if gpu:
                described.append(device_of(at, product or name or "", _mapping(extra)))
        if described:
            self.meta["deviceProperties"] = described
            self.meta["devices"] = {device["id"]: device for device in described}
        return out

    def _read_events(self) -> None:
        """Take links, categories and messages of events."""
        found = self._tables.read(
            "event",
            {
                **dict.fromkeys(("id", "category_id", "stack_id", "correlation_id"), "integer"),  # type: ignore[dict-item]
                "extdata": "text",
            },
        )
        columns = found.columns
        self._event = Keys(filled(columns.get("id"), found.count))
        link = filled(columns.get("stack_id"), found.count)
        # some writers give the one id alone
        self._link = link if (link > 0).any() else filled(columns.get("correlation_id"), found.count)
        self._category = filled(columns.get("category_id"), found.count)
        extra = columns.get("extdata")
        self._extra = np.full(found.count, -1, np.int32) if extra is None else extra.values
        self._messages = [
            message if isinstance(message := _mapping(text).get("message"), str) else None
            for text in ([] if extra is None else extra.texts or [])
        ]
        keys, texts, codes = self._strings
        if "info_category" in self._tables:
            keys, texts, codes = self._tables.strings("info_category", "name")
        self._categories = keys, texts, codes

    def _of_event(self, event: Ints, column: Ints, missing: int = -1) -> Ints:
        return self._event.values(event, column, missing)

    def _resolved(self, known: dict[int, int], ids: Ints) -> Ints:
        """Replace ids of a table by the system's numbers; some writers have these in place of the ids."""
        distinct, inverse = combinations([ids])
        return np.array([*(known.get(one, one) for (one,) in distinct), -1], np.int64)[inverse]

    def _devices(self, ids: Ints) -> Ints:
        distinct, inverse = combinations([ids])
        index = [agent.index if (agent := self._agents.get(one)) is not None else -1 for (one,) in distinct]
        return np.array([*index, -1], np.int64)[inverse]

    def _named(self, ids: Ints, missing: str) -> Codes:
        """Return the names that ids of strings stand for."""
        keys, texts, codes = self._strings
        table = self._names.table([*texts], missing)
        text = keys.values(ids, np.asarray(codes, np.int64), -1)
        return table[text]

    # -- rows ------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all tables of events, and count the others."""
        tables, events = self._tables, self._events
        if "kernel_dispatch" in tables:
            self._kernels()
        if "memory_copy" in tables:
            self._copies()
        if "region" in tables:
            self._regions()
        if "memory_allocate" in tables:
            self._allocations()
        if "sample" in tables:
            self._samples()
        if "pmc_event" in tables:
            self._counters()
        for table in tables.names:
            count, lost = tables.counts[table] if table in tables.counts else _count(tables, table)
            events.leave_out("damaged_row", lost)
            if table not in _EVENTS:
                events.described[f"rocpd_{table}"] = events.described.get(f"rocpd_{table}", 0) + count

    def _add(self, table: str, found: dict[str, Ints], process: Ints, **columns: Any) -> None:
        tables = self._tables
        details = TableDetails(
            tables.database, tables.names[table], tables.names.get("event"), tables.names.get("arg")
        )
        self._events.add(
            f"rocpd_{table}",
            details,
            **columns,
            start=found["start"],
            end=found["end"],
            link=self._of_event(found["event_id"], self._link),
            scope=self._scopes(process),
        )

    def _scopes(self, process: Ints) -> Ints:
        """Return the number of what ids count within: run and process."""
        distinct, inverse = combinations([process])
        return np.array([*(self._events.scope(self._number, pid) for (pid,) in distinct), -1], np.int64)[
            inverse
        ]

    def _process(self, found: dict[str, Ints]) -> Ints:
        return self._resolved(self._processes, found["pid"])

    def _kernels(self) -> None:
        found = self._tables.events("kernel_dispatch", ("kernel_id", "event_id"))
        process = self._process(found)
        symbols = self._tables.texts("info_kernel_symbol", "id", ("display_name", "kernel_name"))
        distinct, inverse = combinations([found["kernel_id"]])
        texts = [next((text for text in symbols.get(one, ()) if text), None) for (one,) in distinct]
        codes = self._names.table(
            [
                text.removesuffix(".kd") if text else f"kernel {one}"
                for text, (one,) in zip(texts, distinct, strict=True)
            ],
            "kernel",
        )
        kinds = np.array(
            [kind_by_rules(KINDS.index("kernel"), self._names.texts[code]) for code in codes.tolist()],
            np.int8,
        )
        self._add(
            "kernel_dispatch",
            found,
            name=codes[inverse],
            kind=kinds[inverse],
            domain=GPU,
            track=self._places.queues(
                process, self._devices(found["agent_id"]), found["queue_id"], found["stream_id"]
            ),
            process=process,
        )

    def _copies(self) -> None:
        found = self._tables.events("memory_copy", ("name_id", "event_id", "dst_agent_id", "src_agent_id"))
        process = self._process(found)
        to, of = self._devices(found["dst_agent_id"]), self._devices(found["src_agent_id"])
        self._add(
            "memory_copy",
            found,
            name=self._named(found["name_id"], "memory copy"),
            kind="memcpy",
            domain=GPU,
            track=self._places.copies(process, np.where(to >= 0, to, of), found["stream_id"]),
            process=process,
        )

    def _regions(self) -> None:
        found = self._tables.events("region", ("name_id", "event_id"))
        process = self._process(found)
        names = self._named(found["name_id"], "region")
        kind = self._kinds(found["event_id"])
        track = self._places.threads(process, self._resolved(self._threads, found["tid"]))
        ranges = kind == KINDS.index("annotation")
        if ranges.any():
            used, inverse = np.unique(names, return_inverse=True)
            crossing = np.array([crosses_threads(self._names.texts[code]) for code in used.tolist()], bool)
            rows = np.flatnonzero(crossing[inverse] & ranges)
            track[rows] = self._places.each(
                [process[rows]], lambda pid: self._places.row(pid, "async", "roctx ranges (start to end)")
            )
            message, kinds = self._message_codes(found["event_id"])
            said = ranges & (message >= 0)
            names = np.where(said, message, names).astype(np.int32)
            kind = np.where(said, kinds, kind).astype(np.int8)
        self._add("region", found, name=names, kind=kind, domain=HOST, track=track, process=process)

    def _message_codes(self, event: Ints) -> tuple[Codes, NDArray[np.int8]]:
        """Return names and kinds of what the program itself named, -1 elsewhere."""
        names, kinds = ranges_of(self._messages, self._names)
        text = self._of_event(event, np.asarray(self._extra, np.int64))
        return names[text], kinds[text]

    def _kinds(self, event: Ints) -> NDArray[np.int8]:
        keys, texts, codes = self._categories
        table = np.array(
            [*(KINDS.index(kind_of_category(text)) for text in texts), KINDS.index("other")], np.int8
        )
        category = self._of_event(event, self._category)
        return table[keys.values(category, np.asarray(codes, np.int64), -1)]

    def _allocations(self) -> None:
        found = self._tables.events("memory_allocate", ("event_id", "address", "size"))
        process = self._process(found)
        kinds = self._tables.read("memory_allocate", {"type": "text", "level": "text"})
        types, levels = (listed(kinds.columns.get(name), kinds.count) for name in ("type", "level"))
        pairs = [_ALLOCATIONS.get(pair, "memory") for pair in zip(levels, types, strict=True)]
        distinct = list(dict.fromkeys(pairs))
        number = {text: at for at, text in enumerate(distinct)}
        inverse = np.array([number[text] for text in pairs], np.int64)
        name = self._names.table([*distinct], "memory")[inverse]
        scratch = np.array([*("SCRATCH" in text for text in distinct), False], bool)[inverse]
        track = self._places.threads(process, self._resolved(self._threads, found["tid"]))
        rows = np.flatnonzero(scratch)
        if len(rows):
            track[rows] = self._places.each(
                [process[rows]], lambda pid: self._places.row(pid, "async", "scratch memory")
            )
        self._add(
            "memory_allocate", found, name=name, kind="memory", domain=HOST, track=track, process=process
        )
        freed = np.array([*("FREE" in text for text in distinct), False], bool)[inverse]
        known = np.isin(found["agent_id"], list(self._agents))
        device = np.where(known, self._devices(found["agent_id"]), -2)
        rows = np.flatnonzero(~scratch)
        self._allocations_of.add(
            self._scopes(process[rows]),
            device[rows],
            found["address"][rows],
            found["size"][rows],
            found["end"][rows],
            freed[rows],
        )

    def _samples(self) -> None:
        """Add points in time: marks, and calls that took no time at all."""
        found = self._tables.events("sample", ("name_id", "event_id"))
        process = self._process(found)
        name_of = np.where(found["name_id"] >= 0, found["name_id"], found["track_name"])
        names = self._named(name_of, "sample")
        message, _ = self._message_codes(found["event_id"])
        names = np.where(message >= 0, message, names).astype(np.int32)
        self._add(
            "sample",
            found,
            name=names,
            kind=self._kinds(found["event_id"]),
            domain=HOST,
            track=self._places.threads(process, self._resolved(self._threads, found["tid"])),
            marks=np.ones(len(names), bool),
            process=process,
        )

    def _counters(self) -> None:
        """Take values at the end of the dispatch, or the time of the sample, whose event they have."""
        tables = self._tables
        read = tables.read("pmc_event", {"event_id": "integer", "pmc_id": "integer", "value": "real"})
        event, counter = (filled(read.columns.get(name), read.count) for name in ("event_id", "pmc_id"))
        given = read.columns.get("value")
        value = np.full(read.count, math.nan) if given is None else given.values
        events: list[Ints] = []
        times: list[Ints] = []
        places: list[Ints] = []
        for table, moment in (("kernel_dispatch", "end"), ("sample", "start"), ("region", "end")):
            if table in tables:
                found = tables.events(table, ("event_id",))
                events.append(found["event_id"])
                times.append(found[moment])
                places.append(self._devices(found["agent_id"]))
        keys = Keys(np.concatenate(events) if events else np.zeros(0, np.int64))
        at = keys.values(event, np.concatenate(times) if times else np.zeros(0, np.int64))
        device = keys.values(event, np.concatenate(places) if places else np.zeros(0, np.int64))
        said = tables.texts("info_pmc", "id", ("name", "units"))
        of_agent = tables.integers("info_pmc", ("id", "agent_id"))
        agents = Keys(of_agent["id"]).values(counter, of_agent["agent_id"])
        device = np.where(device >= 0, device, self._devices(agents))
        keep = np.flatnonzero((at >= 0) & np.isfinite(value))
        self._events.leave_out("no_value_or_time", read.count - len(keep))
        self._events.read["rocpd_pmc_event"] = self._events.read.get("rocpd_pmc_event", 0) + len(keep)
        if not len(keep):
            return
        pairs, of = combinations([counter[keep], device[keep]])
        pid = next(iter(self._processes.values()), -1)
        self.series.append(
            Series(
                [(said.get(one, (None, None))[0] or f"counter {one}")[:200] for one, _ in pairs],
                [(said.get(one, (None, None))[1] or "")[:50] for one, _ in pairs],
                [
                    self._places.row(
                        pid, "counter", f"counters of GPU {index}" if index >= 0 else "counters", device=index
                    )
                    for _, index in pairs
                ],
                of,
                at[keep],
                value[keep],
            )
        )


def _count(tables: RunTables, table: str) -> tuple[int, int]:
    found = tables.read(table, {})
    return found.count, found.lost


def _mapping(text: str | None) -> dict[str, Any]:
    """Return a mapping out of its JSON; {} for anything else."""
    if not text or len(text) < 3:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
