"""A rocpd database as a trace. Nothing in it is executed: tables are read natively, and no view is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.foreign_database import described
from torchtrt_viz.formats.rocprof.counters import Allocations, Series
from torchtrt_viz.formats.rocprof.database_tables import RunEvents
from torchtrt_viz.formats.rocprof.events import Events, Names
from torchtrt_viz.formats.rocprof.frames import trace_of
from torchtrt_viz.formats.rocprof.places import Places
from torchtrt_viz.formats.rocprof.run_tables import RunTables, runs_of
from torchtrt_viz.formats.rocprof.vocabulary import is_rocpd, table_of
from torchtrt_viz.formats.sqlite.database import Database
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["read_database"]

_MOST_NAMED = 8


def read_database(source: Source, options: LoadOptions) -> TraceData:
    """Read one database, of one run or several.

    Raises
    ------
    TraceFormatError
        When it is no rocpd database, or holds no event; with ``options.strict`` also for any damage.
    """
    database = Database(source)
    _refuse_others(list(database.tables), source.name)
    if options.progress is not None:
        options.progress(0, database.size)
    events, names, places = Events(), Names(), Places()
    series: list[Series] = []
    allocations = Allocations()
    meta: dict[str, Any] = {}
    for number, run in enumerate(runs_of(database)):
        found = RunEvents(run, number, events, names, places, allocations)
        found.read()
        series += found.series
        for key, value in found.meta.items():
            meta.setdefault(key, value)
        version = _version(run)
        if version:
            meta.setdefault("versions", {})["rocpd_schema"] = version
    series += allocations.series(lambda: places.row(-1, "counter", "allocated memory"))
    _other_tables(database, events)
    database.report(options)
    closed = [name for name, table in database.tables.items() if not table.readable]
    if closed:
        words = ", ".join(closed[:_MOST_NAMED])
        text = f"tables that cannot be read (without row ids, virtual, or of a damaged definition): {words}"
        options.warnings.append(Repair("closed_tables", text, source.name, count=len(closed)))
    trace = trace_of(events, names, places, series, meta, source.name, options)
    if options.progress is not None:
        options.progress(database.size, database.size)
    return trace


def _version(run: RunTables) -> str | None:
    """Return the version of the schema that the run states."""
    found = run.read("metadata", {"tag": "text", "value": "text"})
    columns = [found.columns.get(name) for name in ("tag", "value")]
    if any(column is None for column in columns):
        return None
    tags, values = (
        [texts[code] for code in column.values.tolist()]
        for column in columns
        if column is not None and (texts := [*(column.texts or ()), None])
    )
    said = dict(zip(tags, values, strict=True))
    return (said.get("schema_version") or "")[:40] or None


def _other_tables(database: Database, events: Events) -> None:
    """Count the rows of tables that are no tables of the schema."""
    for name, table in database.tables.items():
        if table.readable and table_of(name) is None:
            found = database.read(name, {})
            events.leave_out("damaged_row", found.lost)
            if name.startswith("sqlite_"):
                events.described[name] = found.count
            else:
                events.unread[name] = found.count


def _refuse_others(tables: list[str], path: str) -> None:
    """Refuse a database of another tool.

    Raises
    ------
    TraceFormatError
        With whose it is where the names of its tables tell, else with these names.
    """
    if is_rocpd(tables):
        return
    foreign = described(tables)
    raise TraceFormatError(
        "not a rocpd database",
        path=path,
        offset=0,
        expected="tables as rocpd_info_process_... and rocpd_kernel_dispatch_...",
        found=foreign.what,
        hint=foreign.hint,
    )
