"""The tables of one run of a rocpd database, under their own names, with columns of either schema.

A database may hold several runs (merged files): their tables end in the run's identifier, and ids count
within one run. Version 3 has times and places in each table; version 4 refers to tables of timestamps and
tracks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.rocprof.events import NO_TIME
from torchtrt_viz.formats.rocprof.vocabulary import table_of
from torchtrt_viz.formats.sqlite.database import Database, Kind, Rows, Values

__all__ = ["Keys", "RunTables", "runs_of"]

Ints = NDArray[np.int64]

_PLACE = ("nid", "pid", "tid", "agent_id", "queue_id", "stream_id")


class Keys:
    """Rows of a table by their id."""

    def __init__(self, ids: Ints) -> None:
        self._order = np.argsort(ids, kind="stable")
        self._ids = ids[self._order]

    def rows(self, wanted: Ints) -> Ints:
        """Return the row of each id, -1 where there is none."""
        if not len(self._ids):
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        return np.where((self._ids[at] == wanted) & (wanted >= 0), self._order[at], -1)

    def values(self, wanted: Ints, column: Ints, missing: int = -1) -> Ints:
        """Return a column's value for each id."""
        rows = self.rows(wanted)
        if not len(column):
            return np.full(len(wanted), missing, np.int64)
        return np.where(rows >= 0, column[rows], missing)


class RunTables:
    """The tables of one run.

    Parameters
    ----------
    tables
        Table as the schema names it -> as the database does.
    """

    def __init__(self, database: Database, tables: Mapping[str, str]) -> None:
        self.database = database
        self.names = dict(tables)
        #: Table -> rows, and rows lost to damage.
        self.counts: dict[str, tuple[int, int]] = {}
        self._timestamps: tuple[Keys, Ints] | None = None
        self._tracks: tuple[Keys, dict[str, Ints]] | None = None

    def __contains__(self, table: str) -> bool:
        return table in self.names

    def columns_of(self, table: str) -> list[str]:
        """Return the names of a table's columns."""
        return list(self.database.tables[self.names[table]].columns)

    def read(self, table: str, columns: Mapping[str, Kind]) -> Rows:
        """Return the rows of a table; one that is not there has none."""
        if table not in self.names:
            return Rows(0)
        found = self.database.read(self.names[table], columns)
        self.counts[table] = found.count, found.lost
        return found

    def integers(self, table: str, names: Sequence[str]) -> dict[str, Ints]:
        """Return columns of integers, -1 where there is none."""
        found = self.read(table, dict.fromkeys(names, "integer"))
        return {name: filled(found.columns.get(name), found.count) for name in names}

    def texts(self, table: str, key: str, names: Sequence[str]) -> dict[int, tuple[str | None, ...]]:
        """Return the texts of a small table by the number in ``key``."""
        columns: dict[str, Kind] = {key: "integer", **dict.fromkeys(names, "text")}  # type: ignore[dict-item]
        found = self.read(table, columns)
        numbers = filled(found.columns.get(key), found.count).tolist()
        parts = [listed(found.columns.get(name), found.count) for name in names]
        return dict(zip(numbers, zip(*parts, strict=True), strict=True)) if numbers else {}

    def strings(self, table: str = "string", column: str = "string") -> tuple[Keys, list[str], NDArray[Any]]:
        """Return a table of strings: rows by id, distinct texts, and the code of each row."""
        found = self.read(table, {"id": "integer", column: "text"})
        values = found.columns.get(column)
        keys = Keys(filled(found.columns.get("id"), found.count))
        if values is None:
            return keys, [], np.full(found.count, -1, np.int32)
        return keys, list(values.texts or ()), values.values

    def events(self, table: str, more: Sequence[str]) -> dict[str, Ints]:
        """Return times and places of a table's rows, and the columns of ``more``, in either schema."""
        own = self.columns_of(table)
        wanted = dict.fromkeys(
            ("start", "end", "timestamp", "start_id", "end_id", "timestamp_id", "track_id", *_PLACE, *more)
        )
        found = self.integers(table, [name for name in wanted if name in own])
        count = self.counts[table][0]
        out = {name: found.get(name, np.full(count, -1, np.int64)) for name in more}
        begin, end = ("timestamp", None) if table == "sample" else ("start", "end")
        out["start"] = self._time(found, begin, count)
        out["end"] = out["start"] if end is None else self._time(found, end, count)
        of_track = self._track(found.get("track_id"), count)
        for name in _PLACE:
            given = found.get(name)
            out[name] = of_track[name] if given is None else np.where(given >= 0, given, of_track[name])
        out["track_name"] = of_track["name_id"]
        return out

    def _time(self, found: Mapping[str, Ints], name: str, count: int) -> Ints:
        if name in found:
            return found[name]
        ids = found.get(f"{name}_id")
        if ids is None:
            return np.full(count, NO_TIME, np.int64)
        if self._timestamps is None:
            read = self.integers("timestamp", ("id", "value"))
            self._timestamps = Keys(read["id"]), read["value"]
        return self._timestamps[0].values(ids, self._timestamps[1], NO_TIME)

    def _track(self, ids: Ints | None, count: int) -> dict[str, Ints]:
        names = (*_PLACE, "name_id")
        if ids is None:
            return dict.fromkeys(names, np.full(count, -1, np.int64))
        if self._tracks is None:
            read = self.integers("track", ("id", *names))
            self._tracks = Keys(read["id"]), read
        keys, columns = self._tracks
        return {name: keys.values(ids, columns[name]) for name in names}


def runs_of(database: Database) -> list[RunTables]:
    """Return the runs of a database, in the order of their tables, without those that cannot be read."""
    runs: dict[str, dict[str, str]] = {}
    for name, stored in database.tables.items():
        known = table_of(name)
        if known is not None and stored.readable:
            runs.setdefault(known[1], {})[known[0]] = name
    return [RunTables(database, tables) for tables in runs.values()]


def filled(values: Values | None, count: int, missing: int = -1) -> Ints:
    """Return integers with one number for what is missing; everywhere where there is no such column."""
    return np.full(count, missing, np.int64) if values is None else values.filled(missing)


def listed(values: Values | None, count: int) -> list[str | None]:
    """Return texts row by row."""
    if values is None:
        return [None] * count
    texts = [*(values.texts or ()), None]
    return [texts[code] for code in values.values.tolist()]
