"""The tables of an export, however it was written: a database, or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.sqlite.database import Database, Kind, Rows, Values

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions

__all__ = ["Export", "SqliteExport", "Table", "integers", "missing_in"]


class Export(Protocol):
    """What the frames are made from."""

    #: Bytes that are read, for progress.
    size: int

    @property
    def tables(self) -> Mapping[str, Mapping[str, str]]:
        """Columns of each table that can be read: name -> declared type."""
        ...

    @property
    def closed_tables(self) -> Sequence[str]:
        """Tables that are there and cannot be read."""
        ...

    def read(self, table: str, columns: Mapping[str, Kind], cuts: Sequence[str] = ()) -> Rows:
        """Return the rows of a table, with those of the columns that it has."""
        ...

    def pick(self, table: str, columns: Sequence[str], positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return some rows as mappings, without what is missing."""
        ...

    def report(self, options: LoadOptions) -> None:
        """Say what is damaged."""
        ...


class SqliteExport:
    """An export to SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.size = database.size
        tables = database.tables.values()
        self.tables = {table.name: table.columns for table in tables if table.readable}
        self.closed_tables = [table.name for table in tables if not table.readable]

    def read(self, table: str, columns: Mapping[str, Kind], cuts: Sequence[str] = ()) -> Rows:
        """Return the rows of a table."""
        return self._database.read(table, columns, cuts)

    def pick(self, table: str, columns: Sequence[str], positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return some rows."""
        return self._database.pick(table, columns, positions)

    def report(self, options: LoadOptions) -> None:
        """Say what is damaged."""
        self._database.report(options)


class Table:
    """One table's columns, taken one after the other, so that each is let go when it has been used."""

    def __init__(
        self, export: Export, name: str, columns: Mapping[str, Kind], cuts: Sequence[str] = ()
    ) -> None:
        self.name = name
        found = export.read(name, columns, cuts)
        self.count, self.lost = found.count, found.lost
        self._columns = dict(found.columns)

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def take(self, column: str) -> Values | None:
        """Return a column, which this object then holds no longer; None where the table lacks it."""
        return self._columns.pop(column, None)

    def integers(self, column: str, missing: int = -1) -> NDArray[np.int64]:
        """Return a column of integers, with one number for what is missing (everywhere if it lacks it)."""
        return integers(self.take(column), self.count, missing)


def integers(values: Values | None, count: int, missing: int = -1) -> NDArray[np.int64]:
    """Return integers with one number for what is missing."""
    return np.full(count, missing, np.int64) if values is None else values.filled(missing)


def missing_in(values: Values | None, count: int) -> NDArray[np.bool_]:
    """Say where a column is missing: everywhere if the table lacks it."""
    if values is None:
        return np.ones(count, bool)
    return np.zeros(count, bool) if values.missing is None else values.missing
