"""ETDump (``.etdp``), the profile that ExecuTorch writes, read natively and without importing executorch.

What the file holds: runs ("blocks") of events in the order in which they ended, with ticks, instruction and
delegate identifiers. What it does not hold: the time unit and origin, the method's name, threads, and who
encloses whom. The first three come from the sidecar that the capture writes (:mod:`.etdump_clock`), or from
an ETRecord, or are said to be unknown; nesting is found by the native reader.

Spans: the runtime's own events and the delegates', one track per sequence of runs. ``kind`` is method
(Method::execute), operator (OPERATOR_CALL and the native_call_* inside it), delegate (DELEGATE_CALL and the
torchtrt.delegate inside it), phase (torchtrt.*), layer (everything else that a delegate logs) or other.
``timing`` is modeled where an event's place is not real: counts of microseconds laid end to end (XNNPACK),
or times outside of the call that made them. ``iteration`` counts executions. ``run_id`` is the method, or
for what belongs to a delegate its engine id, else ``method/backend@instruction`` of the parts that are known.

Format: ``executorch/devtools/etdump/etdump_schema_flatcc.fbs``, identifier ED00.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.etdump.args import Calls, EventArgs, Mapping, etrecord_table
from torchtrt_viz.formats.etdump.clock import Clock, Sidecar, read_sidecar
from torchtrt_viz.formats.etdump.dump import Events, Timed, decode, read_bytes, timed
from torchtrt_viz.formats.etdump.etrecord import read_etrecord
from torchtrt_viz.formats.etdump.etrecord_match import match_methods
from torchtrt_viz.formats.etdump.names import Engines, Placing, labels, read_engines
from torchtrt_viz.formats.etdump.owners import run_ids
from torchtrt_viz.formats.etdump.points import (
    Points,
    allocation_frame,
    allocations,
    debugs,
    instants_frame,
    places,
    unfinished,
)
from torchtrt_viz.formats.etdump.runs import Lane, Runs, assign_lanes, make_runs
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.model import schema
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz._native import etdump as native_etdump

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "etdump"

#: kind of each of the native reader's ROLES
_KINDS = (
    "method",
    "other",
    "operator",
    "delegate",
    "other",
    "operator",
    "other",
    "delegate",
    "phase",
    "phase",
    "layer",
)
_KIND_CODES = np.array([schema.KINDS.index(kind) for kind in _KINDS], np.int8)
_MEASURED, _MODELED = schema.TIMINGS.index("measured"), schema.TIMINGS.index("modeled")


def sniff(head: bytes, filename: str) -> bool:
    """Tell an ETDump by its identifier, with or without a size prefix."""
    return bool(native("etdump").recognise(head[:12]))


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read an ETDump, with its sidecar and (``options.etrecord``) its ETRecord.

    ``trace.meta["etdump"]`` holds ``version``, ``runs`` (a frame with one row per block: name, method,
    iteration, status load|ok|failed|unfinished, events, start_ns, dur_ns, bundled_input, thread),
    ``allocations`` (a frame) and ``overlaps``; ``trace.meta["etrecord"]``, when one is given, ``path``,
    ``methods``, ``graph_id`` and ``events`` (see :func:`.etdump_args.etrecord_table`).

    Raises
    ------
    TraceFormatError
        When nothing in the file is whole, or it is no ETDump; with ``strict`` at the first damage.
    """
    data = read_bytes(source)
    if options.progress is not None:
        options.progress(len(data), len(data))
    dump, damage = decode(data, source.name)
    sidecar, unread = read_sidecar(source)
    clock = (sidecar.clock if sidecar is not None else None) or Clock()
    found = timed(dump["events"], clock, source.name)
    events = found.events
    runs, misfits = make_runs(dump, events, sidecar)
    options.report([*damage, *unread, *found.repairs, *misfits])
    engines = read_engines(data, events, runs, dump["strings"])
    mapping, unmapped = _read_mapping(runs, events, dump["strings"], options.etrecord)
    options.report(unmapped)
    lanes = assign_lanes(runs)
    rank = -1 if options.rank is None else options.rank

    spans, gpu_tracks, overlaps, call = _spans(
        events, runs, engines, dump["strings"], mapping, len(lanes), rank
    )
    points, allocated = _points(data, dump, found, runs, mapping)
    instants, instant_args = instants_frame(points, runs.lane, rank)
    meta: dict[str, Any] = {
        "format": FORMAT,
        "sources": [source.name],
        "base_ns": clock.origin_unix_ns,
        "clock": _describe_clock(sidecar, clock),
        "rank": options.rank,
        "versions": {} if sidecar is None else sidecar.versions,
        "warnings": options.warnings,
        "etdump": {
            "version": dump["version"],
            "runs": runs.frame(events),
            "allocations": allocated,
            "engines": {} if sidecar is None else sidecar.engines,
            "overlaps": overlaps,
        },
    }
    if mapping is not None:
        meta["etrecord"] = {
            "path": mapping.record.path,
            "methods": sorted(mapping.record.methods),
            "graph_id": mapping.record.graph_id,
            "events": etrecord_table(mapping, events, runs, dump["strings"]),
        }
    return TraceData(
        spans=spans,
        tracks=_tracks(lanes, gpu_tracks, source, rank),
        instants=instants,
        meta=meta,
        args=EventArgs(data, events, runs, dump["strings"], mapping, Calls(call, engines)),
        instant_args=instant_args,
    )


def _read_mapping(
    runs: Runs, events: Events, strings: list[str], etrecord: str | PathLike[str] | Source | None
) -> tuple[Mapping | None, list[Repair]]:
    """Return what leads from the events to the program's graph, and what is wrong with the ETRecord."""
    if etrecord is None:
        return None, []
    try:
        record = read_etrecord(etrecord)
    except TraceFormatError as error:
        if error.found is None:  # there is no such file: the caller's mistake, not damage
            raise
        return None, [Repair("etrecord_unreadable", str(error), error.path)]
    explained, repairs = match_methods(record, runs, events, strings)
    damaged = [Repair("etrecord_damaged", problem, record.path) for problem in record.problems]
    return Mapping(record, frozenset(explained)), [*damaged, *repairs]


def _describe_clock(sidecar: Sidecar | None, clock: Clock) -> str:
    if sidecar is None or sidecar.clock is None:
        return (
            "ticks of the ExecuTorch runtime since it was initialised, taken as nanoseconds: the file "
            "records neither their unit nor their origin, and no sidecar with an anchor lies beside it"
        )
    return (
        "nanoseconds since the ExecuTorch runtime was initialised "
        f"(ticks x {clock.numerator}/{clock.denominator}), placed in Unix time by the anchor in "
        f"{sidecar.name}"
    )


def _spans(
    events: Events,
    runs: Runs,
    engines: Engines,
    strings: list[str],
    mapping: Mapping | None,
    lanes: int,
    rank: int,
) -> tuple[pd.DataFrame, list[str], int, NDArray[np.int64]]:
    """Return the spans, labels of the GPU tracks behind the lanes, number of overlaps, and calls."""
    placing = engines.placing
    parent, depth, self_ns, call, modeled, overlaps = native("etdump").arrange(
        events.run,
        events.chain,
        events.instruction,
        events.role,
        events.start,
        events.dur,
        runs.shape,
        placing.placing,
        placing.in_engine,
    )
    run_id = run_ids(events, runs, engines, mapping)
    track = runs.lane[events.run] if len(events) else np.zeros(0, np.int32)
    domain: Any = "host"
    gpu_tracks: list[str] = []
    elsewhere = placing.elsewhere
    timing = modeled.astype(np.int8)
    timing *= _MODELED
    if len(elsewhere):
        domain = np.zeros(len(events), np.int8)
        domain[elsewhere] = schema.DOMAINS.index("gpu")
        timing[elsewhere] = _MODELED
        owners = np.asarray(run_id.codes)[elsewhere]
        known, where = np.unique(owners, return_inverse=True)
        gpu_tracks = ["engine" if code < 0 else f"engine {run_id.categories[code]}" for code in known]
        track[elsewhere] = lanes + where.reshape(-1)
    frame = schema.SPANS.frame(
        {
            "name": labels(strings, events, placing),
            "kind": _KIND_CODES[events.role],
            "domain": domain,
            "timing": timing if timing.any() else "measured",
            "track": track,
            "start_ns": events.start,
            "dur_ns": events.dur,
            "self_ns": self_ns,
            "depth": depth,
            "parent": parent,
            "iteration": runs.iteration[events.run] if len(events) else np.zeros(0, np.int32),
            "rank": rank,
            "run_id": run_id,
        },
        length=len(events),
    )
    return frame, gpu_tracks, int(overlaps), call


def _points(
    data: bytes,
    dump: native_etdump.Dump,
    found: Timed,
    runs: Runs,
    mapping: Mapping | None,
) -> tuple[list[Points], pd.DataFrame]:
    """Return the instants of each sort, and the frame of allocations."""
    invalid = found.invalid
    strings = dump["strings"]
    raw_first = dump["runs"]["first"]

    def at(columns: native_etdump.Debugs | native_etdump.Allocations) -> NDArray[np.int64]:
        return places(columns["run"], columns["after"], raw_first, found.kept, found.events, runs)

    frame = allocation_frame(dump, at(dump["allocations"]))
    out = [debugs(dump, at(dump["debugs"])), allocations(frame)]
    if len(invalid):
        names = labels(strings, invalid, Placing())
        args = EventArgs(data, invalid, runs, strings, mapping)
        out.append(
            Points(
                [str(name) for name in names],
                "other",
                "invalid",
                invalid.start,
                invalid.run,
                lambda i: args.read(np.array([i]))[0],
            )
        )
    out.append(unfinished(runs))
    return out, frame


def _tracks(lanes: list[Lane], gpu_tracks: list[str], source: Source, rank: int) -> pd.DataFrame:
    name = source.filename
    label = [
        name + (f", thread {lane.thread}" if lane.thread is not None else "") + (f" ({i + 1})" if i else "")
        for i, lane in enumerate(lanes)
    ]
    return schema.TRACKS.frame(
        {
            "label": [*label, *gpu_tracks],
            "type": ["method"] * len(lanes) + ["engine"] * len(gpu_tracks),
            "domain": ["host"] * len(lanes) + ["gpu"] * len(gpu_tracks),
            "process": None,
            "thread": [None if lane.thread is None else str(lane.thread) for lane in lanes]
            + [None] * len(gpu_tracks),
            "rank": rank,
        },
        length=len(lanes) + len(gpu_tracks),
    )
