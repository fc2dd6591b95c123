"""Calls on host threads: CUDA, libraries, the operating system; and what recording cost."""

from __future__ import annotations

from torchtrt_viz.formats.nsys.events import HOST, MODELED, NO_TIME, Events, Scopes
from torchtrt_viz.formats.nsys.export import Export, Table, missing_in
from torchtrt_viz.formats.nsys.names import Names, call_name, kinds_by_name
from torchtrt_viz.formats.nsys.places import Places, process_of
from torchtrt_viz.formats.nsys.vocabulary import HOST_CALLS, OVERHEADS
from torchtrt_viz.formats.sqlite.database import Kind

__all__ = ["GRAPH_EVENTS", "read_host"]

#: When graphs and their nodes were made: points in time on the thread that made them.
GRAPH_EVENTS = ("CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS")


def read_host(
    export: Export, names: Names, places: Places, scopes: Scopes, events: Events
) -> dict[str, tuple[int, int]]:
    """Read the tables of calls.

    Returns
    -------
    dict
        Table -> (rows, rows lost to damage).
    """
    out: dict[str, tuple[int, int]] = {}
    for table, (kind, launches) in HOST_CALLS.items():
        if table in export.tables:
            found = _read(export, table, ("correlationId",) if launches else ())
            out[table] = found.count, found.lost
            _add_calls(found, kind, launches, names, places, scopes, events)
    for table in OVERHEADS:
        if table in export.tables:
            found = _read(export, table)
            out[table] = found.count, found.lost
            _add_overhead(found, names, places, events)
    for table in GRAPH_EVENTS:
        if table in export.tables:
            found = _read(export, table)
            out[table] = found.count, found.lost
            events.add_instants(
                table,
                name=names.of_ids(found.integers("nameId"), call_name, "graph"),
                kind="other",
                domain=HOST,
                track=places.threads(found.integers("globalTid")),
                at=found.integers("start", NO_TIME),
            )
    return out


def _read(export: Export, table: str, more: tuple[str, ...] = ()) -> Table:
    columns: dict[str, Kind] = dict.fromkeys(
        ("start", "end", "globalTid", "nameId", "textId", *more), "integer"
    )
    return Table(export, table, columns)


def _add_calls(
    found: Table,
    kind: str,
    launches: bool,
    names: Names,
    places: Places,
    scopes: Scopes,
    events: Events,
) -> None:
    thread = found.integers("globalTid")
    correlation = None
    if launches:
        correlation = scopes.scoped(found.integers("correlationId"), process_of(thread))
    track = places.threads(thread)
    del thread
    column = "nameId" if "nameId" in found else "textId"
    name = names.of_ids(found.integers(column), call_name, "(unnamed call)")
    start, end = found.integers("start", NO_TIME), found.take("end")
    events.add(
        found.name,
        name=name,
        kind=kinds_by_name(names.texts, name, kind),
        domain=HOST,
        track=track,
        start=start,
        end=start if end is None else end.values,
        open_end=missing_in(end, found.count),
        correlation=correlation,
    )


def _add_overhead(found: Table, names: Names, places: Places, events: Events) -> None:
    """Add the recorder's own work: shown beside the threads that it held up, and in no sum."""
    process = process_of(found.integers("globalTid"))
    track = places.groups([process], lambda _: "profiler overhead")
    start, end = found.integers("start", NO_TIME), found.take("end")
    events.add(
        found.name,
        name=names.of_ids(found.integers("nameId"), missing="profiler overhead"),
        kind="other",
        domain=HOST,
        track=track,
        start=start,
        end=start if end is None else end.values,
        open_end=missing_in(end, found.count),
        timing=MODELED,
    )
