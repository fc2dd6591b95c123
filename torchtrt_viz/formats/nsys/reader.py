"""Exports of Nsight Systems (``nsys export``): SQLite files, and folders of Parquet tables.

Read are kernels, copies, fills and whole graphs with their streams, calls of the CUDA runtime and driver, of
cuDNN, cuBLAS, MPI and the operating system, NVTX ranges and marks of every domain, how long the host waited
for the device, allocations, the recorder's own overhead, GPU metrics, and what the tool says about its
recording. A launch is known by its process and its correlation id: the id alone is used again by every
process. Tables of other kinds (backtraces, samples, scheduling) are counted, and named in a warning.

Tables and columns are looked for by name. A report as the profiler writes it (``.nsys-rep``) is closed: the
error names the command that exports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.foreign_database import database_of, described
from torchtrt_viz.formats.nsys.vocabulary import is_export, table_of_file

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.formats.nsys.export import Export
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "nsys"

_SQLITE = b"SQLite format 3\x00"
_PARQUET = b"PAR1"
_ENDING = ".sqlite"


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether this is an export: a database with its tables, or a Parquet file named as one of them.

    Where the list of tables lies too far behind the database's beginning, the ending of the name decides.
    """
    if head.startswith(_PARQUET):
        return table_of_file(filename) is not None
    if not head.startswith(_SQLITE):
        return False
    # slow to import: it needs numpy
    from torchtrt_viz.formats.sqlite.database import tables_at

    tables, complete = tables_at(head)
    if is_export(tables, complete=complete):
        return True
    return not complete and database_of(tables) is None and filename.lower().endswith(_ENDING)


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read one export; of a folder of Parquet tables any one names the whole.

    Raises
    ------
    TraceFormatError
        When it is none, or holds no event; with ``options.strict`` also for any damage.
    """
    # slow to import: they need numpy, pandas and pyarrow
    from torchtrt_viz.formats.nsys.frames import trace_of

    export, path = _opened(source)
    if options.progress is not None:
        options.progress(0, export.size)
    trace = trace_of(export, path, options)
    if options.progress is not None:
        options.progress(export.size, export.size)
    return trace


def _opened(source: Source) -> tuple[Export, str]:
    if source.head(len(_PARQUET)) == _PARQUET:
        # slow to import: it needs pyarrow
        from torchtrt_viz.formats.nsys.parquet_export import ParquetExport

        if not source.on_disk:
            raise TraceFormatError(
                "tables of Parquet are read from a folder on disk",
                path=source.name,
                offset=0,
                expected="a folder of files, one a table",
                found="a file in an archive, or compressed",
                hint="Unpack it, and load the folder",
            )
        folder = source.path.parent
        return ParquetExport(folder), str(folder)
    # slow to import: it needs numpy
    from torchtrt_viz.formats.nsys.export import SqliteExport
    from torchtrt_viz.formats.sqlite.database import Database

    database = Database(source)
    _refuse_others(list(database.tables), source.name)
    return SqliteExport(database), source.name


def _refuse_others(tables: list[str], path: str) -> None:
    """Refuse a database of another tool.

    Raises
    ------
    TraceFormatError
        With whose it is where the names of its tables tell, else with these names.
    """
    if is_export(tables):
        return
    foreign = described(tables)
    raise TraceFormatError(
        "not an export of Nsight Systems",
        path=path,
        offset=0,
        expected="tables as StringIds and CUPTI_ACTIVITY_KIND_KERNEL",
        found=foreign.what,
        hint=foreign.hint,
    )
