"""A result file of rocprofv3 as a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtrt_viz.formats.io.gc_paused import collector_paused
from torchtrt_viz.formats.rocprof.counters import Allocations, Series
from torchtrt_viz.formats.rocprof.events import Events, Names
from torchtrt_viz.formats.rocprof.frames import trace_of
from torchtrt_viz.formats.rocprof.json_tables import ProcessTables
from torchtrt_viz.formats.rocprof.places import Places
from torchtrt_viz.formats.rocprof.results import processes_of

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["read_results"]


def read_results(source: Source, options: LoadOptions) -> TraceData:
    """Read one file; it may hold several processes.

    Raises
    ------
    TraceFormatError
        When it is no result of rocprofv3, or holds no event; with ``options.strict`` also for any damage.
    """
    events, names, places = Events(), Names(), Places()
    series: list[Series] = []
    allocations = Allocations()
    meta: dict[str, Any] = {}
    with collector_paused():
        processes = processes_of(source, options)
        for scope in range(len(processes)):
            tables = ProcessTables(processes[scope], scope, events, names, places, allocations)
            processes[scope] = {}  # nobody else holds the records
            tables.read()
            series += tables.series
            _describe(meta, tables)
            del tables
        del processes
    series += allocations.series(lambda: places.row(-1, "counter", "allocated memory"))
    return trace_of(events, names, places, series, meta, source.name, options)


def _describe(meta: dict[str, Any], tables: ProcessTables) -> None:
    """Take what the first process says of machine and devices."""
    node = tables.metadata.get("node")
    host = node.get("hostname") if isinstance(node, dict) else None
    if isinstance(host, str) and host:
        meta.setdefault("host_name", host[:1000])
    if tables.described and "devices" not in meta:
        meta["deviceProperties"] = tables.described
        meta["devices"] = {device["id"]: device for device in tables.described}
