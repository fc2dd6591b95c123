"""Single tables as Parquet files: written for every reader of Parquet, and read with bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source

__all__ = ["ROWS_PER_GROUP", "damaged", "opened", "read_columns", "write_table"]

ROWS_PER_GROUP = 1 << 18
"""Rows of a group: what a reader takes at a time, and skips by its least and largest values."""

_FREE_BYTES = 256 << 20
_MAX_EXPANSION = 2_000  # columns of one repeated value are legitimately small
_MAX_ROWS = 1 << 31
_DELTA = ("int32", "int64")
_DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table: texts by dictionaries, integers by differences, compressed with zstandard."""
    delta = {field.name: "DELTA_BINARY_PACKED" for field in table.schema if str(field.type) in _DELTA}
    dictionaries = [field.name for field in table.schema if field.name not in delta]
    pq.write_table(
        table,
        path,
        row_group_size=ROWS_PER_GROUP,
        compression="zstd",
        compression_level=1,
        use_dictionary=dictionaries,
        column_encoding=delta or None,
        write_statistics=True,
    )


def damaged(source: Source, table: str, error: object, expected: str | None = None) -> TraceFormatError:
    """Return the error for a table that cannot be used."""
    return TraceFormatError(
        f"the table {table} of the saved trace is damaged",
        path=source.name,
        expected=expected or "a whole Parquet file, as it was written",
        found=str(error).partition("\n")[0][:300] or type(error).__name__,
        hint="Copy the whole folder again, or save the trace again",
    )


def opened(source: Source, table: str, texts: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a table, and hold what it claims to hold against its size.

    Parameters
    ----------
    texts
        Columns that are read as dictionaries.

    Raises
    ------
    TraceFormatError
        When it is no Parquet file, damaged at its end, or expands without bound.
    """
    try:
        if source.on_disk:
            file = pq.ParquetFile(source.path, read_dictionary=list(texts), memory_map=False)
            stored = source.path.stat().st_size
        else:
            data = source.read()
            file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=list(texts))
            stored = len(data)
        meta = file.metadata
        claimed = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    except _DAMAGED as error:
        raise damaged(source, table, error) from error
    claimed = max(claimed, meta.num_rows * 4 * max(1, meta.num_columns))
    if meta.num_rows > _MAX_ROWS or claimed > max(_FREE_BYTES, _MAX_EXPANSION * stored):
        file.close()
        raise TraceFormatError(
            "the table expands without bound",
            path=source.name,
            expected=f"at most {_MAX_EXPANSION} times the stored size",
            found=f"{meta.num_rows} rows in {stored} bytes",
            hint="Read it yourself if you trust it: pandas.read_parquet(path)",
        )
    return file


def read_columns(source: Source, table: str, columns: Sequence[str], texts: Sequence[str] = ()) -> pa.Table:
    """Read some columns of a table, in this order.

    Parameters
    ----------
    texts
        Those that are read as dictionaries.

    Raises
    ------
    TraceFormatError
        When one is missing, or the table is damaged.
    """
    with opened(source, table, texts) as file:
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise damaged(source, table, f"no column {missing[0]!r}", f"the columns {', '.join(columns)}")
        try:
            return file.read(columns=list(columns)).select(list(columns))
        except _DAMAGED as error:
            raise damaged(source, table, error) from error
