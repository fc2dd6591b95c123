"""A connection of DuckDB that reads the tables it is given, and nothing else: no files, network or settings.

Only single statements that read are run. Around that the database itself is closed: no file but those of
the dataset can be opened, nothing is installed or loaded, no variable of the program is seen, and these
settings cannot be changed back.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError

if TYPE_CHECKING:
    import duckdb

__all__ = ["Parameters", "answered", "connection"]

Parameters = Sequence[Any] | Mapping[str, Any] | None
"""Values for the ``?`` (or ``$name``) of a query."""

_READS = "SELECT"  # EXPLAIN ANALYZE runs what it explains
_SHOWN = 300


@contextmanager
def connection(folder: str | None = None, *, progress: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database in memory; `lock` it when its tables are there.

    Parameters
    ----------
    folder
        Folder whose files may be read.
    progress
        Show a progress bar on queries that take long.

    Raises
    ------
    MissingDependencyError
        Without duckdb.
    """
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError("duckdb", "sql", "run queries in SQL") from error
    with tempfile.TemporaryDirectory(prefix="torchtrt_viz.") as spill:
        database = duckdb.connect(":memory:")
        try:
            settings: dict[str, Any] = {
                "temp_directory": spill,  # what does not fit into memory, instead of .tmp where one is
                "enable_progress_bar": progress,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
            for name, value in settings.items():
                database.execute(f"SET {name} = {_literal(value)}")
            if folder is not None:
                database.execute(f"SET allowed_directories = [{_literal(folder.rstrip('/') + '/')}]")
            yield database
        finally:
            database.close()


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + str(value).replace("'", "''") + "'"


def answered(
    database: duckdb.DuckDBPyConnection,
    query: str,
    parameters: Parameters,
    *,
    timeout: float | None,
) -> pd.DataFrame:
    """Run one query that reads, and return its rows; nothing else can be done with the database afterwards.

    Raises
    ------
    OptionError
        For a query that is not one statement that reads, and a ``timeout`` that is not above 0.
    TorchTrtVizError
        When the database refuses it, or it takes longer than ``timeout``.
    """
    import duckdb

    if timeout is not None and not timeout > 0:
        raise OptionError("timeout", timeout, "seconds above 0, or None")
    try:
        statements = database.extract_statements(query)
    except duckdb.Error as error:
        raise _refused(error) from error
    kinds = [statement.type.name for statement in statements]
    if kinds != [_READS]:
        found = ", ".join(kinds) or "none"
        raise OptionError("query", _short(query), f"one statement that reads (SELECT), not {found}")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    late = threading.Event()

    def stop() -> None:
        late.set()
        database.interrupt()

    watch = threading.Timer(timeout, stop) if timeout is not None else None
    if watch is not None:
        watch.daemon = True
        watch.start()
    try:
        table = database.sql(query, params=parameters).to_arrow_table()
    except duckdb.InterruptException as error:
        if not late.is_set():
            raise KeyboardInterrupt from error
        raise TorchTrtVizError(
            f"the query took longer than {timeout} s and was stopped: ask for less, or give another timeout"
        ) from error
    except duckdb.Error as error:
        raise _refused(error) from error
    finally:
        if watch is not None:
            watch.cancel()
    return _frame(table)


def _refused(error: Exception) -> TorchTrtVizError:
    return TorchTrtVizError(f"DuckDB refuses the query: {error}")


def _short(query: str) -> str:
    return query if len(query) <= _SHOWN else query[:_SHOWN] + " ..."


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return the rows as a frame: whole numbers stay whole, and what is missing is missing."""
    columns = [_column(table.column(place)) for place in range(table.num_columns)]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    frame.columns = pd.Index(table.column_names)
    return frame


def _column(column: pa.ChunkedArray) -> pd.Series:
    kind = column.type
    if pa.types.is_decimal(kind) and kind.scale == 0:  # sums of integers
        try:
            column, kind = column.cast(pa.int64()), pa.int64()
        except pa.ArrowInvalid:  # beyond 64 bits: whole numbers of Python
            cells = [None if cell is None else int(cell) for cell in column.to_pylist()]
            return pd.Series(cells, dtype=object)
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        name = "boolean" if pa.types.is_boolean(kind) else str(kind).replace("i", "I").replace("uI", "UI")
        missing = np.asarray(column.is_null())
        filled = column.fill_null(False if name == "boolean" else 0).to_numpy()
        made: Any = pd.arrays.BooleanArray if name == "boolean" else pd.arrays.IntegerArray
        return pd.Series(made(np.array(filled), missing))
    found: pd.Series = column.to_pandas()
    return found
