"""A database: which tables it has, and their columns as arrays.

Nothing in the file is executed, nothing is written, no index, free page or log is looked at. What is damaged
is passed over and noted; `Database.report` says it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source

__all__ = ["Database", "Kind", "Rows", "StoredTable", "Values", "tables_at"]

Kind = Literal["integer", "real", "text", "any"]
"""What a column is wanted as; values of another type are missing. "any" keeps the type of each value."""

_REFUSED = {
    "short": (
        "the database stops before its first page ends",
        "Export it again: the tool was stopped, or the disk was full",
    ),
    "magic": ("not an SQLite database", "Name the file that the tool wrote"),
    "page_size": (
        "the size of the database's pages is none that SQLite has",
        "The file is damaged or encrypted: export it again",
    ),
    "encoding": (
        "the database's texts have an encoding that SQLite does not have",
        "The file is damaged: export it again",
    ),
    "no_schema": ("the database's list of tables is damaged", "Export it again, or try sqlite3's .recover"),
}
_EXPECTED = {
    "short": "at least one whole page",
    "magic": "SQLite format 3",
    "page_size": "a power of two from 512 to 65536",
    "encoding": "UTF-8 or UTF-16",
    "no_schema": "a page of rows that name tables",
}
_PLACES = {"magic": 0, "page_size": 16, "encoding": 56, "short": 0, "no_schema": 100}

_FAULTS = {
    "truncated": "the database stops before pages that its tables need: what is on them is lost",
    "revisited": "pages of the database are linked twice: they are read once",
    "page": "pages of the database hold something else than the rows that are expected there",
    "depth": "a table is nested deeper than SQLite nests any: what lies deeper is lost",
    "cell": "rows lie outside of their page, or over one another, and were left out",
    "record": "rows whose values do not fit into them were left out",
    "overflow": "the rest of long rows is missing: values in it are missing",
}


def tables_at(head: bytes) -> tuple[list[str], bool]:
    """Return the tables that the first bytes of a database name, and whether these are all."""
    about = native("sqlite").Database(head).about()
    if about["refusal"]:
        return [], False
    return [name for name, kind, *_ in about["tables"] if kind == "table"], not about["damages"][0]


@dataclass(frozen=True)
class StoredTable:
    """A table of the database.

    Attributes
    ----------
    columns
        Name -> declared type, of the columns whose values are stored.
    readable
        False for tables without row ids, virtual tables, and those whose definition is damaged.
    """

    number: int
    name: str
    columns: Mapping[str, str]
    positions: Mapping[str, int]
    readable: bool


@dataclass(frozen=True)
class Values:
    """The values of one column.

    Attributes
    ----------
    values
        int64, float64 (NaN missing), or codes of ``texts`` (int32, -1 missing).
    missing
        Where an integer is missing; None: nowhere.
    cut
        Where a text was cut; None where none was asked to be.
    misfits
        Values of another type than the wanted one.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None
    texts: list[str] | None = None
    cut: NDArray[np.bool_] | None = None
    misfits: int = 0

    def filled(self, missing: int = -1) -> NDArray[np.int64]:
        """Return the integers, with one number for what is missing."""
        if self.missing is None:
            return self.values
        return np.where(self.missing, np.int64(missing), self.values)


@dataclass(frozen=True)
class Rows:
    """The rows of a table: how many there are, how many were lost to damage, and the columns asked for."""

    count: int
    lost: int = 0
    columns: Mapping[str, Values] = field(default_factory=dict)


class Database:
    """An open database.

    Raises
    ------
    TraceFormatError
        When it is no SQLite database, or its list of tables cannot be read.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stamp = source.stamp()
        self._lock = threading.Lock()
        self._native: Any = _opened(source)
        about = self._native.about()
        if about["refusal"]:
            raise self._refused(about["refusal"], about)
        self.tables: dict[str, StoredTable] = {}
        #: Kind of damage -> how often, and the byte offset of the first.
        self.damages: dict[str, tuple[int, int]] = {}
        self._note(about["damages"])
        for number, (name, kind, readable, _, columns) in enumerate(about["tables"]):
            if kind != "table" or name in self.tables:
                continue
            positions = {column: at for at, (column, _, stored) in enumerate(columns) if stored}
            types = {column: declared for column, declared, stored in columns if stored}
            self.tables[name] = StoredTable(number, name, types, positions, readable)
        self.size: int = about["bytes"]
        self._whole: int = about["stated_pages"] * about["page_size"]
        self._logged: bool = about["logged"]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_native", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _native=None, _lock=threading.Lock())

    def __deepcopy__(self, memo: dict[int, Any]) -> Database:
        return self  # nothing of it changes

    def read(self, table: str, columns: Mapping[str, Kind], cuts: Sequence[str] = ()) -> Rows:
        """Return the rows of a table; columns that it lacks are left out.

        Parameters
        ----------
        cuts
            Texts are cut before the first of these, so that those that differ behind it are one.
        """
        stored = self.tables[table]
        wanted = {name: kind for name, kind in columns.items() if name in stored.positions}
        found = self._opened().read(stored.number, self._requests(stored, wanted, cuts))
        self._note(found["damages"])
        columns_found = zip(wanted, found["columns"], strict=True)
        return Rows(found["rows"], found["lost"], {name: _values(column) for name, column in columns_found})

    def pick(self, table: str, columns: Sequence[str], positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return some rows by their position, as mappings without what is NULL; their pages alone are read.

        Raises
        ------
        TraceFormatError
            When the file is gone, or not the one that was opened any more.
        """
        stored = self.tables[table]
        names = [name for name in columns if name in stored.positions]
        distinct, back = np.unique(positions, return_inverse=True)
        requests = self._requests(stored, dict.fromkeys(names, "any"), ())
        found = self._opened().pick(stored.number, requests, np.ascontiguousarray(distinct, dtype=np.int64))
        rows: list[dict[str, Any]] = [{} for _ in range(len(distinct))]
        for name, column in zip(names, found["columns"], strict=True):
            for row, value in zip(rows, _typed(column), strict=True):
                if value is not None:
                    row[name] = value
        return [rows[at] for at in back.tolist()]

    def report(self, options: LoadOptions) -> None:
        """Say what is damaged, or could not be seen.

        Raises
        ------
        TraceFormatError
            For damage, when ``options.strict`` is set.
        """
        name = self._source.name
        if self._whole > self.size:
            text = f"the database has {self.size} of the {self._whole} bytes that it says it has"
            options.repaired(Repair("truncated", text, name, self.size))
        for fault, (count, offset) in self.damages.items():
            options.repaired(Repair(f"database_{fault}", _FAULTS[fault], name, offset, count))
        for ending, what in (("-wal", "write-ahead log"), ("-journal", "journal")):
            if ending == "-wal" and not self._logged:
                continue
            beside = self._source.beside(self._source.filename + ending)
            if beside is not None and self._source.on_disk and beside.stored_bytes:
                text = (
                    f"a {what} lies beside the database, and is not read: what was written last may be "
                    "missing. Open and close the database once with the tool that wrote it"
                )
                options.warnings.append(Repair("database_log", text, beside.name))

    def _opened(self) -> Any:
        with self._lock:
            if self._native is None:  # a copy in another process
                if self._source.stamp() != self._stamp:
                    raise TraceFormatError(
                        "the file has changed since the trace was loaded",
                        path=self._source.name,
                        hint="Load it again",
                    )
                self._native = _opened(self._source)
            return self._native

    def _requests(
        self, stored: StoredTable, wanted: Mapping[str, Kind], cuts: Sequence[str]
    ) -> list[tuple[int, str, list[str]]]:
        return [
            (stored.positions[name], kind, list(cuts) if kind == "text" else [])
            for name, kind in wanted.items()
        ]

    def _note(self, damages: tuple[int, list[tuple[str, int]]]) -> None:
        count, first = damages
        for fault, offset in first:
            so_far, place = self.damages.get(fault, (0, offset))
            self.damages[fault] = (so_far + 1, min(place, offset))
        if count > len(first) and first:  # of more than are listed the kinds of the first stand for all
            fault = first[-1][0]
            so_far, place = self.damages[fault]
            self.damages[fault] = (so_far + count - len(first), place)

    def _refused(self, why: str, about: Mapping[str, Any]) -> TraceFormatError:
        message, hint = _REFUSED[why]
        damages = about["damages"][1]
        place = damages[0][1] if why == "no_schema" and damages else _PLACES[why]
        return TraceFormatError(
            message,
            path=self._source.name,
            offset=place,
            expected=_EXPECTED[why],
            found=f"a file of {about['bytes']} bytes",
            hint=hint,
        )


def _opened(source: Source) -> Any:
    """Open the compiled reader on the file itself, or on what decompressing it gives."""
    make = native("sqlite").Database
    if not source.on_disk:
        return make(source.read())
    try:
        descriptor = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TraceFormatError(
            "the file cannot be opened", path=source.name, found=error.strerror, hint="Check the path"
        ) from error
    try:
        return make(descriptor)
    finally:
        os.close(descriptor)


def _values(column: Mapping[str, Any]) -> Values:
    missing, cut = column.get("missing"), column.get("cut")
    return Values(
        column["values"],
        None if missing is None else missing.view(np.bool_),
        column.get("texts"),
        None if cut is None else cut.view(np.bool_),
        column["misfits"],
    )


def _typed(column: Mapping[str, Any]) -> list[Any]:
    """Return the values of a column in which each has a type of its own."""
    values, types, contents = column["values"], column["types"].tolist(), column["texts"]
    reals = values.view(np.float64).tolist()
    out: list[Any] = []
    for kind, integer, real in zip(types, values.tolist(), reals, strict=True):
        if kind == 0:
            out.append(None)
        elif kind == 1:
            out.append(integer)
        elif kind == 2:
            out.append(real)
        else:
            out.append(contents[integer].decode("utf-8", "replace") if kind == 3 else contents[integer])
    return out
