"""Details of single events of an ETDump, built on demand: ids, metadata, and what an ETRecord says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.etdump.dump import Events
from torchtrt_viz.formats.etdump.etrecord import ETRecord
from torchtrt_viz.formats.etdump.names import Engines, delegate_debug_id, group, metadata_of, parse_metadata
from torchtrt_viz.formats.etdump.runs import Runs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Calls", "EventArgs", "ForeignTicks", "Mapping", "etrecord_table"]


@dataclass(frozen=True)
class ForeignTicks:
    """Numbers that are of another clock than the runtime's, as recorded: rows in `Events`, start and end."""

    rows: NDArray[np.int64]
    start: NDArray[np.uint64]
    end: NDArray[np.uint64]

    @property
    def count(self) -> NDArray[np.int64]:
        """End less start."""
        return (self.end - self.start).astype(np.int64)

    def find(self, row: int) -> dict[str, Any]:
        """Return ``unit`` ("unknown"), ``start_ticks`` and ``end_ticks`` of an event of another clock."""
        at = int(np.searchsorted(self.rows, row))
        if at == len(self.rows) or self.rows[at] != row:
            return {}
        return {"unit": "unknown", "start_ticks": int(self.start[at]), "end_ticks": int(self.end[at])}


@dataclass(frozen=True)
class Mapping:
    """An ETRecord and the runs that it explains."""

    record: ETRecord
    runs: frozenset[int]

    def find(self, runs: Runs, run: int, instruction: int, delegate_id: int | str | None) -> dict[str, Any]:
        """Return what is recorded about an event: backend, debug handles, operators, modules, sources."""
        name = runs.method_name(run)
        if run not in self.runs or name is None:
            return {}
        method = self.record.methods[name]
        out: dict[str, Any] = {}
        delegate = method.delegates.get(instruction)
        if delegate is not None:
            out["backend"] = delegate.backend
        handles = method.handles(instruction, delegate_id)
        if handles is None:
            return out
        nodes = method.find(handles)
        out["debug_handles"] = list(handles)
        out["op_types"] = [node.op for node in nodes]
        modules = dict.fromkeys(node.module or "(root)" for node in nodes if node.module is not None)
        sources = dict.fromkeys(node.source for node in nodes if node.source is not None)
        out |= {"modules": list(modules), "sources": list(sources)}
        if modules:
            out["module"] = ", ".join(modules)
        if sources:
            out["source"] = ", ".join(sources)
        return out


class Calls:
    """Which engine each delegate call ran, and which call each event lies in."""

    def __init__(self, call: NDArray[np.int64], engines: Engines) -> None:
        self._call = call
        self._engines = engines

    @cached_property
    def _entry(self) -> dict[int, int]:
        """Row of a DELEGATE_CALL (or of a torchtrt.delegate without one) -> entry of the engines."""
        rows = self._engines.rows
        call = np.where(self._call[rows] >= 0, self._call[rows], rows)
        return {row: entry for entry, row in enumerate(call.tolist())}

    def find(self, row: int) -> dict[str, Any]:
        """Return ``engine_id`` and ``engine_runtime`` of the call that an event is, or lies in."""
        entry = self._entry.get(int(self._call[row]) if self._call[row] >= 0 else row)
        if entry is None:
            return {}
        found = {
            "engine_id": self._engines.engine_id[entry],
            "engine_runtime": self._engines.runtime[entry],
        }
        return {key: value for key, value in found.items() if value is not None}


class EventArgs:
    """Arguments of events, by their row in `Events`.

    Keys: ``block`` (index of the run in the dump), ``block_name``, ``method``, ``chain``, ``instruction``,
    ``delegate_debug_id`` (as the delegate logged it: str or int); for the DELEGATE_CALL of an engine and
    what lies in it ``engine_id`` and ``engine_runtime``; with an ETRecord ``backend``, ``debug_handles``,
    ``op_types``, ``modules`` and ``sources`` (``file:line``), and the last two joined as ``module`` and
    ``source``, each only where it was recorded; for numbers of another clock ``unit`` ("unknown"),
    ``start_ticks`` and ``end_ticks``; and the keys of a JSON object in the metadata. Metadata that
    is something else, or whose key is one of the above, is under ``metadata``.
    """

    def __init__(
        self,
        data: bytes,
        events: Events,
        runs: Runs,
        strings: list[str],
        mapping: Mapping | None,
        calls: Calls | None = None,
        ticks: ForeignTicks | None = None,
    ) -> None:
        self._data = data
        self._events = events
        self._runs = runs
        self._strings = strings
        self._mapping = mapping
        self._calls = calls
        self._ticks = ticks

    def read(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        return [self._one(int(row)) for row in rows]

    def _one(self, row: int) -> dict[str, Any]:
        events, runs = self._events, self._runs
        run = int(events.run[row])
        chain, instruction = int(events.chain[row]), int(events.instruction[row])
        out: dict[str, Any] = {"block": run}
        if runs.names[run] is not None:
            out["block_name"] = runs.names[run]
        method = runs.method_name(run)
        if method is not None:
            out["method"] = method
        if chain < 0:  # the runtime's framework events: their instruction means nothing
            out["chain"] = chain
        else:
            out |= {"chain": chain, "instruction": instruction}
        delegate_id = delegate_debug_id(events, row, self._strings)
        if delegate_id is not None:
            out["delegate_debug_id"] = delegate_id
        if self._mapping is not None and chain >= 0:
            out |= self._mapping.find(runs, run, instruction, delegate_id)
        if self._calls is not None:
            out |= self._calls.find(row)
        if self._ticks is not None:
            out |= self._ticks.find(row)
        raw = metadata_of(self._data, events, row)
        if raw:
            _merge(out, parse_metadata(raw))
        return out


def _merge(out: dict[str, Any], facts: dict[str, Any] | str) -> None:
    if isinstance(facts, str):
        out["metadata"] = facts
        return
    known = {**out}
    apart = {key: value for key, value in facts.items() if key in known and known[key] != value}
    out.update({key: value for key, value in facts.items() if key not in known})
    if apart:
        out["metadata"] = apart


def etrecord_table(
    mapping: Mapping, events: Events, runs: Runs, strings: list[str], foreign: NDArray[np.bool_]
) -> pd.DataFrame:
    """Return one row per distinct event that the ETRecord can explain.

    Columns: ``method``, ``instruction``, ``name`` (None: a delegate's event), ``delegate_debug_id`` (None:
    the runtime's own event), ``backend``, ``op_types``, ``modules``, ``sources``, ``debug_handles`` (lists;
    None: not recorded), ``events`` (how many the dump has) and ``total_ns`` (their summed durations, NA for
    events of another clock, those of ``foreign``; an OPERATOR_CALL contains its native_call, a DELEGATE_CALL
    its delegate's events).
    """
    import pandas as pd

    explained = np.zeros(len(runs), bool)
    explained[list(mapping.runs)] = True
    rows = np.flatnonzero(explained[events.run] & (events.chain >= 0))
    code, first = group(
        [
            runs.method[events.run[rows]],
            events.instruction[rows],
            events.delegate_id[rows],
            events.delegate_name[rows],
            events.name[rows],
        ]
    )
    records = []
    for at in rows[first].tolist():
        run, instruction = int(events.run[at]), int(events.instruction[at])
        delegate_id = delegate_debug_id(events, at, strings)
        found = mapping.find(runs, run, instruction, delegate_id)
        records.append(
            {
                "method": runs.method_name(run),
                "instruction": instruction,
                "name": strings[int(events.name[at])] if events.name[at] >= 0 else None,
                "delegate_debug_id": delegate_id,
                **{key: found.get(key) for key in ("backend", "op_types", "modules", "sources")},
                "debug_handles": found.get("debug_handles"),
            }
        )
    columns = [
        "method",
        "instruction",
        "name",
        "delegate_debug_id",
        "backend",
        "op_types",
        "modules",
        "sources",
    ]
    frame = pd.DataFrame(records, columns=[*columns, "debug_handles"], dtype=object)
    total = np.zeros(len(first), np.int64)
    np.add.at(total, code, events.dur[rows])
    frame["events"] = np.bincount(code, minlength=len(first)).astype(np.int64)
    unknown = np.zeros(len(first), bool)
    unknown[code[foreign[rows]]] = True
    frame["total_ns"] = pd.array(total, dtype="Int64")
    frame.loc[unknown, "total_ns"] = pd.NA
    return frame
