"""ETDump (``.etdp``), the profile that ExecuTorch writes, read natively and without importing executorch.

What the file holds: runs ("blocks") of events in the order in which they ended, with ticks, instruction and
delegate identifiers. What it does not hold: the time unit and origin, the method's name, threads, and who
encloses whom. The first three come from the sidecar that the capture writes (:mod:`.etdump_clock`), or from
an ETRecord, or are said to be unknown; nesting is found by the native reader.

Spans: the runtime's own events and the delegates', one track per sequence of runs. ``kind`` is method
(Method::execute), operator (OPERATOR_CALL and the native_call_* inside it), delegate (DELEGATE_CALL and the
torchtrt.delegate inside it), phase (torchtrt.*), layer (everything else that a delegate logs) or other.
``timing`` is modeled where an event's place is not real: counts of microseconds laid end to end (XNNPACK). It
is ticks where a delegate counted another clock (:mod:`.foreign_clock`): such rows have no domain, start or
parent, and lie on a track of their own. ``iteration`` counts executions. ``run_id`` is the method, or
for what belongs to a delegate its engine id, else ``method/backend@instruction`` of the parts that are known.

Format: ``executorch/devtools/etdump/etdump_schema_flatcc.fbs``, identifier ED00.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.etdump.accounting import accounting_of
from torchtrt_viz.formats.etdump.args import Calls, EventArgs, ForeignTicks, Mapping, etrecord_table
from torchtrt_viz.formats.etdump.clock import Clock, Sidecar, read_sidecar
from torchtrt_viz.formats.etdump.dump import Events, Timed, decode, read_bytes, timed
from torchtrt_viz.formats.etdump.etrecord import read_etrecord
from torchtrt_viz.formats.etdump.etrecord_match import match_methods
from torchtrt_viz.formats.etdump.foreign_clock import foreign_events, foreign_repair
from torchtrt_viz.formats.etdump.names import ELSEWHERE, Placing, labels, read_engines
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
_MODELED, _TICKS = schema.TIMINGS.index("modeled"), schema.TIMINGS.index("ticks")


def sniff(head: bytes, filename: str) -> bool:
    """Tell an ETDump by its identifier, with or without a size prefix."""
    return bool(native("etdump").recognise(head[:12]))


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read an ETDump, with its sidecar and (``options.etrecord``) its ETRecord.

    ``trace.meta["etdump"]`` holds ``version``, ``runs`` (a frame with one row per block: name, method,
    iteration, status load|ok|failed|unfinished, events, start_ns, dur_ns, bundled_input, thread),
    ``allocations`` (a frame) and ``overlaps``; ``trace.meta["accounting"]`` what became of every event
    (:func:`.accounting.accounting_of`); ``trace.meta["etrecord"]``, when one is given, ``path``,
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
    if not any(len(dump[part]["run"]) for part in ("events", "allocations", "debugs")):
        options.warnings.append(
            Repair(
                "no_events",
                f"an ETDump of {len(runs)} runs without any event: nothing ran while it was recorded, or the "
                "runtime was built without the event tracer (EXECUTORCH_ENABLE_EVENT_TRACER)",
                source.name,
            )
        )
    engines = read_engines(data, events, runs, dump["strings"])
    mapping, unmapped = _read_mapping(runs, events, dump["strings"], options.etrecord)
    options.report(unmapped)
    lanes = assign_lanes(runs)
    rank = -1 if options.rank is None else options.rank

    tree, foreign = _tree(events, runs, engines.placing)
    run_id = run_ids(events, runs, engines, mapping)
    ticks = _as_recorded(dump["events"], found, foreign)
    if len(ticks.rows):
        owners = _owners(run_id, ticks.rows)[0]
        # nothing is damaged: strict loading takes it
        options.warnings.append(foreign_repair(foreign, owners, source.name))
    spans, more_tracks = _spans(
        events, runs, engines.placing, tree, ticks, run_id, dump["strings"], len(lanes), rank
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
            "overlaps": tree.overlaps,
        },
        "accounting": accounting_of(dump, len(data), found, ticks.rows),
    }
    if mapping is not None:
        meta["etrecord"] = {
            "path": mapping.record.path,
            "methods": sorted(mapping.record.methods),
            "graph_id": mapping.record.graph_id,
            "events": etrecord_table(mapping, events, runs, dump["strings"], foreign),
        }
    return TraceData(
        spans=spans,
        tracks=_tracks(lanes, more_tracks, source, rank),
        instants=instants,
        meta=meta,
        args=EventArgs(data, events, runs, dump["strings"], mapping, Calls(tree.call, engines), ticks),
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
        f"{PurePath(sidecar.name).name}"
    )


@dataclass(frozen=True)
class _Tree:
    """What the native reader finds of each event: see `_native.etdump.arrange`."""

    parent: NDArray[np.int64]
    depth: NDArray[np.int32]
    self_ns: NDArray[np.int64]
    call: NDArray[np.int64]
    modeled: NDArray[np.uint8]
    overlaps: int


def _tree(events: Events, runs: Runs, placing: Placing) -> tuple[_Tree, NDArray[np.bool_]]:
    """Return the tree of the events, and which of them are of another clock and stand outside of it."""
    tree = _arranged(events, runs, placing.placing, placing.in_engine)
    foreign = foreign_events(events, runs, tree.call, placing.placing)
    if not foreign.any():
        return tree, foreign
    without = placing.placing.copy() if len(placing.placing) else np.zeros(len(events), np.uint8)
    without[foreign] = ELSEWHERE
    return _arranged(events, runs, without, placing.in_engine), foreign


def _arranged(events: Events, runs: Runs, placing: NDArray[np.uint8], in_engine: NDArray[np.uint8]) -> _Tree:
    return _Tree(
        *native("etdump").arrange(
            events.run,
            events.chain,
            events.instruction,
            events.role,
            events.start,
            events.dur,
            runs.shape,
            placing,
            in_engine,
        )
    )


def _as_recorded(columns: native_etdump.Events, found: Timed, foreign: NDArray[np.bool_]) -> ForeignTicks:
    """Return the numbers of events of another clock as the file has them."""
    rows = np.flatnonzero(foreign)
    recorded = rows if found.kept is None else found.kept[rows]
    return ForeignTicks(rows, columns["start"][recorded], columns["end"][recorded])


def _owners(run_id: pd.Categorical, rows: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Return what rows belong to, each once ("engine": nothing says it), and the number of each row's."""
    known, where = np.unique(np.asarray(run_id.codes)[rows], return_inverse=True)
    return ["engine" if code < 0 else str(run_id.categories[code]) for code in known], where.reshape(-1)


def _spans(
    events: Events,
    runs: Runs,
    placing: Placing,
    tree: _Tree,
    ticks: ForeignTicks,
    run_id: pd.Categorical,
    strings: list[str],
    lanes: int,
    rank: int,
) -> tuple[pd.DataFrame, list[tuple[str, str, str | None]]]:
    """Return the spans; and label, type and domain of the tracks behind the lanes."""
    import pandas as pd

    track = runs.lane[events.run] if len(events) else np.zeros(0, np.int32)
    domain: Any = "host"
    tracks: list[tuple[str, str, str | None]] = []
    timing = tree.modeled.astype(np.int8)
    timing *= _MODELED
    start: Any = events.start
    dur, self_ns = events.dur, tree.self_ns
    elsewhere = placing.elsewhere
    if len(elsewhere) or len(ticks.rows):
        domain = np.zeros(len(events), np.int8)
    if len(elsewhere):
        domain[elsewhere] = schema.DOMAINS.index("gpu")
        timing[elsewhere] = _MODELED
        names, where = _owners(run_id, elsewhere)
        tracks += [(name if name == "engine" else f"engine {name}", "engine", "gpu") for name in names]
        track[elsewhere] = lanes + where
    if len(ticks.rows):
        rows = ticks.rows
        domain[rows], timing[rows] = -1, _TICKS
        names, where = _owners(run_id, rows)
        track[rows] = lanes + len(tracks) + where
        tracks += [(f"{name}: numbers of another clock", "delegate", None) for name in names]
        start = pd.array(start, dtype="Int64")
        start[rows] = pd.NA
        dur, self_ns = dur.copy(), self_ns.copy()
        dur[rows] = self_ns[rows] = ticks.count
    frame = schema.SPANS.frame(
        {
            "name": labels(strings, events, placing),
            "kind": _KIND_CODES[events.role],
            "domain": domain,
            "timing": timing if timing.any() else "measured",
            "track": track,
            "start_ns": start,
            "dur_ns": dur,
            "self_ns": self_ns,
            "depth": tree.depth,
            "parent": tree.parent,
            "iteration": runs.iteration[events.run] if len(events) else np.zeros(0, np.int32),
            "rank": rank,
            "run_id": run_id,
        },
        length=len(events),
    )
    return frame, tracks


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


def _tracks(
    lanes: list[Lane], more: list[tuple[str, str, str | None]], source: Source, rank: int
) -> pd.DataFrame:
    name = source.filename
    rows: list[tuple[str, str, str | None]] = [
        (
            name
            + (f", thread {lane.thread}" if lane.thread is not None else "")
            + (f" ({i + 1})" if i else ""),
            "method",
            "host",
        )
        for i, lane in enumerate(lanes)
    ]
    rows += more
    return schema.TRACKS.frame(
        {
            "label": [label for label, _, _ in rows],
            "type": [type for _, type, _ in rows],
            "domain": [domain for _, _, domain in rows],
            "process": None,
            "thread": [None if lane.thread is None else str(lane.thread) for lane in lanes]
            + [None] * len(more),
            "rank": rank,
        },
        length=len(rows),
    )
