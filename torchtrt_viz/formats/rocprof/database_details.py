"""Arguments of rows, read from their tables when somebody asks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.torch_ranges import details_of, stem_of
from torchtrt_viz.formats.rocprof.args import blocks_of
from torchtrt_viz.formats.sqlite.database import Database

__all__ = ["TableDetails"]

Ints = NDArray[np.int64]

#: What the frames have, and keys of other tables that mean nothing outside of them.
_SHOWN = frozenset(
    {"id", "guid", "nid", "pid", "start", "end", "name_id", "event_id", "kernel_id", "region_name_id"}
    | {"start_id", "end_id", "timestamp_id", "timestamp", "track_id", "extdata", "call_stack", "line_info"}
)
_RENAMED = {
    "queue_id": "queue",
    "stream_id": "stream",
    "tid": "thread_id",
    "size": "bytes",
    "agent_id": "agent",
}
_AXES = ("x", "y", "z")
_MOST_ARGUMENTS = 100


class TableDetails:
    """The arguments of the rows of one table.

    Parameters
    ----------
    table, events, arguments
        Names of the table, and of those of events and of calls' arguments, as the database has them.
    """

    def __init__(self, database: Database, table: str, events: str | None, arguments: str | None) -> None:
        self._database = database
        self._table, self._events, self._arguments = table, events, arguments
        self._by_event: tuple[Ints, Ints] | None = None
        self._event_rows: tuple[Ints, Ints] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_by_event": None, "_event_rows": None}

    def has(self, key: str) -> bool:
        """Whether any row may have this argument."""
        return key != "domain"

    def read(self, rows: Ints) -> list[dict[str, Any]]:
        """Return one mapping per row.

        Raises
        ------
        TraceFormatError
            When the file is gone, or not the one that was loaded any more.
        """
        columns = list(self._database.tables[self._table].columns)
        found = self._database.pick(self._table, columns, rows)
        out = [_shaped(raw) for raw in found]
        ids = np.array([_id(raw.get("event_id")) for raw in found], np.int64)
        self._add_events(out, ids)
        self._add_arguments(out, ids)
        return out

    def _add_events(self, out: list[dict[str, Any]], ids: Ints) -> None:
        if self._events is None or not (ids >= 0).any():
            return
        if self._event_rows is None:
            self._event_rows = _index(self._database, self._events, "id")
        keys, order = self._event_rows
        at = np.minimum(np.searchsorted(keys, ids), max(len(keys) - 1, 0))
        known = np.flatnonzero((ids >= 0) & (keys[at] == ids)) if len(keys) else np.zeros(0, np.int64)
        picked = self._database.pick(
            self._events, ("stack_id", "parent_stack_id", "correlation_id", "extdata"), order[at[known]]
        )
        for row, raw in zip(known.tolist(), picked, strict=True):
            names = {
                "stack_id": "correlation",
                "parent_stack_id": "ancestor",
                "correlation_id": "external correlation",
            }
            for column, name in names.items():
                if isinstance(raw.get(column), int) and raw[column] > 0:
                    out[row][name] = raw[column]
            out[row] |= _extra(raw.get("extdata"))

    def _add_arguments(self, out: list[dict[str, Any]], ids: Ints) -> None:
        """Add what calls were given."""
        if self._arguments is None or not (ids >= 0).any():
            return
        if self._by_event is None:
            self._by_event = _index(self._database, self._arguments, "event_id")
        keys, order = self._by_event
        low, high = np.searchsorted(keys, ids), np.searchsorted(keys, ids, side="right")
        high = np.minimum(high, low + _MOST_ARGUMENTS)
        wanted = np.concatenate(
            [order[a:b] for a, b in zip(low.tolist(), high.tolist(), strict=True)] or [order[:0]]
        )
        if not len(wanted):
            return
        picked = self._database.pick(
            self._arguments, ("event_id", "position", "type", "name", "value"), wanted
        )
        by_event: dict[int, list[dict[str, Any]]] = {}
        for raw in picked:
            by_event.setdefault(_id(raw.pop("event_id", None)), []).append(raw)
        for row, event in enumerate(ids.tolist()):
            if event in by_event:
                out[row]["args"] = sorted(by_event[event], key=lambda raw: _id(raw.get("position")))


def _index(database: Database, table: str, column: str) -> tuple[Ints, Ints]:
    """Return the numbers of a column in order, and the row of each."""
    found = database.read(table, {column: "integer"})
    values = found.columns.get(column)
    numbers = np.full(found.count, -1, np.int64) if values is None else values.filled(-1)
    order = np.argsort(numbers, kind="stable")
    return numbers[order], order


def _id(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 63 else -1


def _shaped(raw: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    sizes = {what: [raw.pop(f"{what}_size_{axis}", None) for axis in _AXES] for what in ("grid", "workgroup")}
    if all(type(number) is int and number >= 0 for axes in sizes.values() for number in axes):
        blocks = blocks_of(sizes["grid"], sizes["workgroup"])
        if blocks is not None:
            out["grid"] = blocks
        out |= {"block": sizes["workgroup"], "grid_size": sizes["grid"], "workgroup_size": sizes["workgroup"]}
    for column, value in raw.items():
        if column not in _SHOWN:
            out[_RENAMED.get(column, column)] = value.hex() if isinstance(value, bytes) else value
    return out | _extra(raw.get("extdata"))


def _extra(text: Any) -> dict[str, Any]:
    """Return what a column of JSON adds."""
    if not isinstance(text, str) or len(text) < 3:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {"extdata": text[:1000]}
    if not isinstance(found, dict):
        return {}
    message = found.get("message")
    if isinstance(message, str):  # the name has it, but for what torch writes behind its own names
        del found["message"]
        if stem_of(message) != message:
            found |= {"text": message, **details_of(message)}
    return {str(key): value for key, value in found.items()}
