"""Details of events as a table: the row of each event that has any, and its details as JSON text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.gc_paused import collector_paused
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.saved.plain import NotPlain, loads, texts_of
from torchtrt_viz.formats.saved.tables import ROWS_PER_GROUP, damaged, opened
from torchtrt_viz.model.args import Args

__all__ = ["SCHEMA", "SavedArgs", "details_of", "write_details"]

SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), False, {"meaning": "row of the frame whose events these are"}),
        pa.field("args", pa.string(), False, {"meaning": "the event's details", "encoding": "json"}),
    ]
)

_PER_STEP = 1 << 15


def details_of(args: Args) -> Iterator[pa.RecordBatch]:
    """Yield the details of a frame's events, some at a time; events without any are left out."""
    for first in range(0, len(args), _PER_STEP):
        rows = np.arange(first, min(first + _PER_STEP, len(args)))
        yield _batch(rows, args)


def _batch(rows: NDArray[np.int64], args: Args) -> pa.RecordBatch:
    told = args.texts(rows)
    if told is None:
        kept, texts = _read(rows, args)
        return pa.record_batch([pa.array(kept), pa.array(texts, pa.string())], schema=SCHEMA)
    codes, known = np.asarray(told[0]), told[1]
    asked = np.flatnonzero(codes == -2)
    if len(asked):
        # the same rows again: their texts take the place of what could not be told
        kept, texts = _read(rows[asked], args)
        codes = codes.copy()
        codes[asked] = -1
        codes[kept - rows[0]] = np.arange(len(known), len(known) + len(texts))
        known = [*known, *texts]
    has = np.flatnonzero(codes >= 0)
    values = pa.array(known, pa.string()).take(pa.array(codes[has]))
    return pa.record_batch([pa.array(rows[has]), values], schema=SCHEMA)


def _read(rows: NDArray[np.int64], args: Args) -> tuple[NDArray[np.int64], list[str]]:
    """Return which of some rows have details, and these as text."""
    with collector_paused():
        found = args.read(rows)
        texts = texts_of([each for each in found if each])
    return rows[np.fromiter((bool(each) for each in found), bool, len(found))], texts


def write_details(args: Args, path: Path) -> int:
    """Write the table; return its number of rows."""
    rows = 0
    with pq.ParquetWriter(
        path,
        SCHEMA,
        compression="zstd",
        compression_level=1,
        use_dictionary=["args"],
        column_encoding={"row": "DELTA_BINARY_PACKED"},
    ) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in details_of(args):
            rows += batch.num_rows
            waiting.append(batch)
            if (
                sum(each.num_rows for each in waiting) >= ROWS_PER_GROUP // 4
            ):  # texts are long: smaller groups
                writer.write_table(pa.Table.from_batches(waiting, SCHEMA))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, SCHEMA))
    return rows


class SavedArgs:
    """Details of events, read from their table when somebody asks.

    Parameters
    ----------
    source
        The table.
    length
        Rows of the frame whose events these are.
    count
        Rows of the table, as the document says.
    """

    def __init__(self, source: Source, table: str, length: int, count: int) -> None:
        self._source = source
        self._table = table
        self._length = length
        self._count = count
        self._stamp = source.stamp()
        self._rows: list[NDArray[np.int64]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None}

    def read(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        """Return one mapping per row.

        Raises
        ------
        TraceFormatError
            When the table is gone, damaged, or not the one that was loaded any more.
        """
        out: list[dict[str, Any]] = [{} for _ in range(len(rows))]
        for place, text in self._texts(np.asarray(rows, np.int64)):
            out[place] = self._mapping(text)
        return out

    def values(self, rows: NDArray[Any], key: str) -> tuple[NDArray[np.int64], list[Any]]:
        """Return one detail of many rows: a code per row (-1 none), and each code's value."""
        codes = np.full(len(rows), -1, np.int64)
        values: list[Any] = []
        known: dict[str, Any] = {}
        for place, text in self._texts(np.asarray(rows, np.int64)):
            found = self._mapping(text)
            if key in found:
                value = found[key]
                name = repr(value)
                if name not in known:
                    known[name] = len(values)
                    values.append(value)
                codes[place] = known[name]
        return codes, values

    def _mapping(self, text: str) -> dict[str, Any]:
        try:
            found = loads(text)
        except NotPlain as error:
            raise damaged(self._source, self._table, error, "details as JSON text") from error
        if not isinstance(found, dict):
            raise damaged(self._source, self._table, f"a {type(found).__name__}", "details by name")
        return found

    def _texts(self, wanted: NDArray[np.int64]) -> Iterator[tuple[int, str]]:
        """Yield the place in ``wanted``, and the text, of each of these rows that has details."""
        if not len(wanted) or not self._count:
            return
        if self._source.stamp() != self._stamp:
            raise TraceFormatError(
                "the file has changed since the trace was loaded",
                path=self._source.name,
                hint="Details of events are read from the file when they are asked for: load it again",
            )
        with opened(self._source, self._table) as file:
            groups = self._rows_of_groups(file)
            for number, rows in enumerate(groups):
                at = np.searchsorted(rows, wanted)
                at[at == len(rows)] = 0
                places = np.flatnonzero(rows[at] == wanted) if len(rows) else at[:0]
                if not len(places):
                    continue
                texts = self._column(file, number, "args", pa.string())
                try:
                    picked = texts.take(pa.array(at[places])).to_pylist()
                except UnicodeDecodeError as error:
                    raise damaged(self._source, self._table, error, "texts in UTF-8") from error
                for place, text in zip(places.tolist(), picked, strict=True):
                    if text is None:
                        raise damaged(self._source, self._table, "a row without its details")
                    yield place, text

    def _column(self, file: pq.ParquetFile, group: int, name: str, type_: pa.DataType) -> pa.ChunkedArray:
        try:
            found = file.read_row_group(group, columns=[name])[name]
        except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
            raise damaged(self._source, self._table, error) from error
        if found.type != type_:
            raise damaged(self._source, self._table, f"{name} of type {found.type}", f"type {type_}")
        return found

    def _rows_of_groups(self, file: pq.ParquetFile) -> list[NDArray[np.int64]]:
        if self._rows is None:
            groups = []
            last = -1
            for number in range(file.metadata.num_row_groups):
                found = self._column(file, number, "row", pa.int64())
                rows = found.to_numpy()
                if found.null_count or (len(rows) and (rows[0] <= last or (np.diff(rows) <= 0).any())):
                    raise damaged(self._source, self._table, "rows out of order", "ascending rows")
                if len(rows):
                    last = int(rows[-1])
                groups.append(rows)
            if last >= self._length:
                raise damaged(self._source, self._table, f"row {last}", f"rows below {self._length}")
            if sum(map(len, groups)) != self._count:
                found_rows = sum(map(len, groups))
                raise damaged(self._source, self._table, f"{found_rows} rows", f"{self._count} rows")
            self._rows = groups
        return self._rows
