"""A saved trace as frames: dtypes by the document, values by the tables, both checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.saved.bounds import check_events
from torchtrt_viz.formats.saved.details import SavedArgs
from torchtrt_viz.formats.saved.document import TRACE_FORMAT, read_document
from torchtrt_viz.formats.saved.layout import (
    ARGS,
    CATEGORIES,
    FRAMES,
    NUMBERED,
    TRACE,
    Locate,
    beside,
    within_dataset,
)
from torchtrt_viz.formats.saved.plain import NotPlain, from_plain, loads
from torchtrt_viz.formats.saved.tables import damaged, read_columns
from torchtrt_viz.model.args import Args
from torchtrt_viz.model.arrow_frames import (
    JSON,
    NULLABLE,
    NUMBERS,
    OBJECTS,
    NoArrowType,
    Stored,
    column_from_arrow,
)
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.schema import Column
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["read_trace"]

_DTYPES = {*NUMBERS, *NULLABLE, "category", "str", "string", "object"}
_Categories = dict[tuple[str, str], tuple[str, ...]]


def read_trace(document: Source, options: LoadOptions) -> TraceData:
    """Read a saved trace: see `torchtrt_viz.formats.saved.reader.read`."""
    said = read_document(document, TRACE_FORMAT)
    saved = _Saved(document, said)
    frames = {name: saved.event_frame(name) for name in FRAMES}
    check_events(frames, saved.file)
    meta = saved.meta()
    trace = TraceData(
        spans=frames["spans"],
        tracks=frames["tracks"],
        instants=frames["instants"],
        counters=frames["counters"],
        flows=frames["flows"],
        meta=meta,
    )
    trace.meta = {**meta, "warnings": [*meta["warnings"], *options.warnings]}
    trace.as_saved = True
    for name, frame, attribute in zip(ARGS, ("spans", "instants"), ("args", "instant_args"), strict=True):
        length = len(frames[frame])
        setattr(trace, attribute, Args(saved.details(name, length), length))
    return trace


class _Saved:
    """The document, and the tables that it names."""

    def __init__(self, document: Source, said: dict[str, Any]) -> None:
        self._document = document
        self._said = said
        self._dataset = within_dataset(document)
        self._locate: Locate = self._dataset or beside(document)
        self._known: _Categories | None = None

    def refuse(self, found: object, expected: str) -> TraceFormatError:
        """Return the error for what the document says."""
        return TraceFormatError(
            "the document of the saved trace is damaged",
            path=self._document.name,
            expected=expected,
            found=str(found)[:200],
            hint="Copy the whole folder again, or save the trace again",
        )

    def file(self, table: str) -> Source:
        """Return the file of a table.

        Raises
        ------
        TraceFormatError
            When it is not there.
        """
        # frames of the meta data lie beside the document, in a session too
        found = beside(self._document)(table) if table.startswith("meta-") else self._locate(table)
        if found is None:
            folder = self._document.folder
            raise TraceFormatError(
                f"the table {table} of the saved trace is missing",
                path=f"{folder}/{table}.parquet" if self._dataset is None else self._document.name,
                expected=f"{table}.parquet, which was saved with {TRACE}",
                hint="Copy the whole folder again, or save the trace again",
            )
        return found

    def _entry(self, of: Any, key: str, kind: type, expected: str) -> Any:
        value = of.get(key) if isinstance(of, dict) else None
        if type(value) is not kind:
            raise self.refuse(f"{key}: {value!r}", expected)
        return value

    def event_frame(self, name: str) -> pd.DataFrame:
        """Return one of the frames that every trace has.

        Raises
        ------
        TraceFormatError
            When it is not of its schema.
        """
        schema = FRAMES[name]
        frames = self._entry(self._said, "frames", dict, "what each frame holds")
        entry = self._entry(frames, name, dict, f"what the frame {name} holds")
        stored = self._columns(entry)
        constant = entry.get("constant", {})
        known = {column.name for column in schema.columns if not column.derived}
        missing = known - set(stored) - set(constant if isinstance(constant, dict) else ())
        if missing:
            raise self.refuse(f"{name} without {sorted(missing)}", f"all columns of {name}")
        for column in schema.columns:
            if column.name in stored and not _fits(column, stored[column.name]):
                raise self.refuse(
                    f"{name}.{column.name} of dtype {stored[column.name].dtype}", f"dtype {column.dtype}"
                )
        made = self._read(name, entry, {key: how for key, how in stored.items() if key in known})
        length = self._rows(entry)
        for key, value in (constant if isinstance(constant, dict) else {}).items():
            if key != "rank" or not (value is None or (type(value) is int and 0 <= value < 1 << 31)):
                raise self.refuse(f"{name}.{key}: {value!r}", "a rank")
            # the same array for all rows, as loaders make it
            values = np.full(length, -1 if value is None else value, np.int32)
            made[key] = pd.arrays.IntegerArray(values, np.full(length, value is None))
        ordered = {column: made[column] for column in schema.names if column in made}
        try:
            for column in schema.columns:
                if column.categories is not None and list(ordered[column.name].categories) != list(
                    column.categories
                ):
                    raise ValueError(f"categories of {column.name} are not those of the schema")
        except ValueError as error:
            raise damaged(self.file(CATEGORIES), name, error) from error
        frame = pd.DataFrame(ordered, copy=False)
        frame.index = pd.RangeIndex(length)
        return frame

    def _rows(self, entry: dict[str, Any]) -> int:
        rows: int = self._entry(entry, "rows", int, "a number of rows")
        if not 0 <= rows < 1 << 31:
            raise self.refuse(f"rows: {rows}", "a number of rows")
        return rows

    def _columns(self, entry: dict[str, Any]) -> dict[str, Stored]:
        out = {}
        for column in self._entry(entry, "columns", list, "a list of columns"):
            fits = isinstance(column, list) and len(column) in (2, 3) and all(type(x) is str for x in column)
            if not fits or column[1] not in _DTYPES or column[2:] not in ([], [JSON], [OBJECTS]):
                raise self.refuse(column, "name and dtype of a column")
            out[column[0]] = Stored(column[1], column[2] if len(column) == 3 else "")
        return out

    def _read(self, name: str, entry: dict[str, Any], stored: dict[str, Stored]) -> dict[str, Any]:
        source = self.file(name)
        numbered = ["row"] if name in NUMBERED else []
        texts = [column for column, how in stored.items() if how.dtype == "category"]
        table = read_columns(source, name, [*numbered, *stored], texts)
        length = self._rows(entry)
        if table.num_rows != length:
            raise damaged(source, name, f"{table.num_rows} rows", f"{length} rows, as {TRACE} says")
        if numbered:
            row = table["row"]
            if row.type != pa.int64() or row.null_count or not np.array_equal(row, np.arange(length)):
                raise damaged(source, name, "rows out of order", "rows in the order of their column row")
        out = {}
        for column, how in stored.items():
            if how.dtype == "category":
                how = replace(how, categories=self._categories().get((name, column), ()))
            try:
                out[column] = column_from_arrow(table[column], how, loads=loads)
            except (NoArrowType, NotPlain, pa.ArrowException, UnicodeDecodeError) as error:
                raise damaged(
                    source, name, f"in column {column}: {error}", f"a column of dtype {how.dtype}"
                ) from error
        return out

    def _categories(self) -> _Categories:
        """Return the categories of all columns, by frame and column."""
        if self._known is None:
            source = self.file(CATEGORIES)
            table = read_columns(source, CATEGORIES, ["frame", "column", "code", "value"])
            if [str(field.type) for field in table.schema] != ["string", "string", "int64", "string"]:
                raise damaged(source, CATEGORIES, str(table.schema), "texts, and codes of type int64")
            found: dict[tuple[str, str], list[str]] = {}
            try:
                parts = [part.to_pylist() for part in table.columns]
            except UnicodeDecodeError as error:
                raise damaged(source, CATEGORIES, error, "texts in UTF-8") from error
            for frame, column, code, value in zip(*parts, strict=True):
                values = found.setdefault((frame, column), [])
                if code != len(values) or value is None:
                    raise damaged(source, CATEGORIES, f"code {code} of {frame}.{column}", "codes from 0 on")
                values.append(value)
            for (frame, column), values in found.items():
                if len(set(values)) != len(values):
                    raise damaged(source, CATEGORIES, f"{frame}.{column}", "each category once")
            self._known = {key: tuple(values) for key, values in found.items()}
        return self._known

    def meta(self) -> dict[str, Any]:
        """Return the meta data.

        Raises
        ------
        TraceFormatError
            When it is damaged.
        """
        try:
            meta = from_plain(self._said.get("meta"), self._meta_frame)
        except (NotPlain, RecursionError) as error:
            raise self.refuse(f"meta: {error}", "meta data as they were saved") from error
        if not isinstance(meta, dict) or not all(type(key) is str for key in meta):
            raise self.refuse("meta", "meta data by name")
        kinds: dict[str, tuple[type, ...]] = {
            "warnings": (list,),
            "sources": (list,),
            "versions": (dict,),
            "base_ns": (int, type(None)),
            "rank": (int, type(None)),
        }
        for key, allowed in kinds.items():
            if type(meta.get(key)) not in allowed:
                raise self.refuse(f"meta[{key!r}]: {type(meta.get(key)).__name__}", "meta data of a trace")
        if not all(isinstance(each, Repair) for each in meta["warnings"]):
            raise self.refuse("meta['warnings']", "warnings as they were saved")
        return meta

    def _meta_frame(self, entry: Any) -> pd.DataFrame:
        name = self._entry(entry, "name", str, "the name of a table")
        if not name.startswith("meta-") or not name.removeprefix("meta-").isdecimal():
            raise self.refuse(f"name: {name!r}", "the name of a table of the meta data")
        stored = self._columns(entry)
        frame = pd.DataFrame(self._read(name, entry, stored), columns=list(stored))
        if not stored:
            frame.index = pd.RangeIndex(self._rows(entry))
        if "index" in entry:
            index = from_plain(entry["index"])
            if not isinstance(index, list) or len(index) != len(frame):
                raise self.refuse(f"index of {name}", f"{len(frame)} entries")
            frame.index = pd.Index(index, name=from_plain(entry.get("index_name")))
        if "attrs" in entry:
            attrs = from_plain(entry["attrs"], self._meta_frame)
            frame.attrs = attrs if isinstance(attrs, dict) else {}
        return frame

    def details(self, table: str, length: int) -> SavedArgs:
        """Return the events' details, which are read when somebody asks."""
        details = self._entry(self._said, "details", dict, "the rows of the tables of details")
        count = self._entry(details, table, int, f"the rows of {table}")
        if not 0 <= count <= length:
            raise self.refuse(f"{table}: {count} rows", f"at most {length} rows")
        return SavedArgs(self.file(table).local(), table, length, count)


def _fits(column: Column, how: Stored) -> bool:
    if column.dtype == "category":
        return how.dtype == "category"
    if column.name == "start_ns" and how.dtype == "Int64":
        return True
    if column.optional and how.dtype in ("int32", "int64"):
        return True  # frames of earlier versions have -1 there
    return column.fits(how.dtype) and how.text in ("", JSON)
