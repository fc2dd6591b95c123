"""A folder of Parquet files, one a table: ``nsys export --type parquetdir``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.nsys.vocabulary import table_of_file
from torchtrt_viz.formats.sqlite.database import Kind, Rows, Values
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions

__all__ = ["ParquetExport"]

_DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError)


class ParquetExport:
    """An export to Parquet; one table that is damaged is left out.

    Raises
    ------
    TraceFormatError
        When no table can be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._damaged: dict[str, str] = {}
        self.tables: dict[str, Mapping[str, str]] = {}
        self.size = 0
        for path in sorted(folder.glob("*.parquet")):
            table = table_of_file(path.name) or path.stem
            try:
                with pq.ParquetFile(path) as file:
                    types = {field.name: str(field.type) for field in file.schema_arrow}
            except _DAMAGED as error:
                self._damaged[table] = str(error).partition("\n")[0]
                continue
            self.tables[table] = types
            self.size += path.stat().st_size
        if not self.tables:
            raise TraceFormatError(
                "no table of the export can be read",
                path=folder,
                offset=0,
                expected="Parquet files that Nsight Systems wrote",
                found=next(iter(self._damaged.values()), "none"),
                hint="Export it again: nsys export --type parquetdir FILE.nsys-rep",
            )

    @property
    def closed_tables(self) -> list[str]:
        """Tables that are damaged."""
        return list(self._damaged)

    def read(self, table: str, columns: Mapping[str, Kind], cuts: Sequence[str] = ()) -> Rows:
        """Return the rows of a table."""
        wanted = {name: kind for name, kind in columns.items() if name in self.tables[table]}
        try:
            with pq.ParquetFile(self._path(table), memory_map=False) as file:
                count = file.metadata.num_rows
                found = file.read(columns=list(wanted), use_threads=False)
        except _DAMAGED as error:
            self._damaged[table] = str(error).partition("\n")[0]
            return Rows(0)
        return Rows(count, 0, {name: _values(found[name], kind, cuts) for name, kind in wanted.items()})

    def pick(self, table: str, columns: Sequence[str], positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return some rows; only the groups of rows that hold them are read."""
        names = [name for name in columns if name in self.tables[table]]
        rows: dict[int, dict[str, Any]] = {}
        wanted = np.unique(positions)
        try:
            with pq.ParquetFile(self._path(table)) as file:
                sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
                starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
                group = np.searchsorted(starts, wanted, side="right") - 1
                for number in np.unique(group).tolist():
                    mine = wanted[group == number]
                    part = file.read_row_group(int(number), columns=names, use_threads=False)
                    found = part.take(pa.array(mine - starts[number])).to_pylist()
                    for position, row in zip(mine.tolist(), found, strict=True):
                        rows[position] = {key: value for key, value in row.items() if value is not None}
        except (*_DAMAGED, IndexError) as error:
            raise TraceFormatError(
                "the table cannot be read any more",
                path=self._path(table),
                found=str(error).partition("\n")[0],
                hint="Load the export again",
            ) from error
        return [dict(rows[position]) for position in positions.tolist()]

    def report(self, options: LoadOptions) -> None:
        """Say which tables are damaged."""
        for table, why in self._damaged.items():
            text = f"the table cannot be read, and was left out: {why}"
            options.repaired(Repair("damaged_table", text, str(self._path(table))))

    def _path(self, table: str) -> Path:
        return self._folder / f"{table}.parquet"


def _values(column: pa.ChunkedArray, kind: Kind, cuts: Sequence[str]) -> Values:
    if kind == "text":
        return _texts(column, cuts)
    wanted = pa.float64() if kind == "real" else pa.int64()
    try:
        numbers = column.cast(wanted, safe=False).combine_chunks()
    except pa.ArrowException:  # another type altogether
        numbers = pa.nulls(len(column), wanted)
    if isinstance(numbers, pa.ChunkedArray):  # of a column without a chunk
        numbers = pa.concat_arrays(numbers.chunks) if numbers.num_chunks else pa.array([], wanted)
    if kind == "real":
        return Values(numbers.to_numpy(zero_copy_only=False))
    missing = numbers.is_null().to_numpy(zero_copy_only=False) if numbers.null_count else None
    filled = numbers.fill_null(0) if numbers.null_count else numbers
    return Values(filled.to_numpy(zero_copy_only=False), missing)


def _texts(column: pa.ChunkedArray, cuts: Sequence[str]) -> Values:
    text = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(text) or pa.types.is_large_string(text) or pa.types.is_string_view(text)):
        return Values(np.full(len(column), -1, np.int32), None, [])
    whole = column.cast(pa.large_string())
    cut = None
    if cuts:
        pattern = "|".join(_quoted(each) for each in cuts)
        short = pc.replace_substring_regex(whole, f"(?s)({pattern}).*", "", max_replacements=1)
        cut = pc.not_equal(short, whole).fill_null(False).to_numpy().astype(bool)
        whole = short
    encoded = whole.combine_chunks() if whole.num_chunks != 1 else whole.chunk(0)
    encoded = encoded.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return Values(codes, None, encoded.dictionary.to_pylist(), cut)


def _quoted(text: str) -> str:
    return "".join(f"\\{char}" if char in r"\.^$|?*+()[]{}" else char for char in text)
